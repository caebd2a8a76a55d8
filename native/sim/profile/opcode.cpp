#include "opcode.h"

#include <algorithm>
#include <cstdio>
#include <set>
#include <stdexcept>
#include <vector>

namespace fcm::profile {

namespace {

// Not split at "::", which is within a modifier.
std::vector<std::string> words_of(const std::string &opcode) {
    std::vector<std::string> words(1);
    for (const char c : opcode) {
        if (c == '.') words.emplace_back();
        else words.back() += c;
    }
    return words;
}

unsigned bytes_of(const std::string &type) {
    static const std::string kLetters = "usbf";
    if (type.size() < 2 || kLetters.find(type[0]) == std::string::npos) return 0;
    const std::string digits = type.substr(1);
    if (digits == "8") return 1;
    if (digits == "16") return 2;
    if (digits == "32") return 4;
    if (digits == "64") return 8;
    if (digits == "128") return 16;
    return 0;
}

// m16n8k8: 16 * 8 * 8
uint64_t products_of(const std::string &shape) {
    unsigned m = 0, n = 0, k = 0;
    if (std::sscanf(shape.c_str(), "m%un%uk%u", &m, &n, &k) != 3) return 0;
    return uint64_t{m} * n * k;
}

class Words {
public:
    explicit Words(const std::string &opcode) : all_(words_of(opcode)) {}

    const std::string &first() const { return all_.front(); }
    const std::vector<std::string> &all() const { return all_; }
    bool has(const std::string &word) const { return std::find(all_.begin() + 1, all_.end(), word) != all_.end(); }
    bool begins(const std::string &part) const {
        return std::any_of(all_.begin() + 1, all_.end(), [&](const std::string &w) { return w.rfind(part, 0) == 0; });
    }
    unsigned bytes() const {  // of the last type
        for (size_t i = all_.size(); i-- > 1;) {
            if (const unsigned bytes = bytes_of(all_[i])) return bytes;
        }
        return 0;
    }

private:
    std::vector<std::string> all_;
};

Kind memory(const Words &words) {
    Kind kind;
    kind.bytes = words.bytes() * (words.has("v2") ? 2 : words.has("v4") ? 4 : 1);
    kind.reads = words.first() != "st";
    kind.writes = !kind.reads;
    if (words.has("param") || words.begins("param::") || words.has("const")) return {};
    if (words.has("local")) {
        kind.of = Class::local;
    } else if (words.has("shared") || words.begins("shared::")) {
        kind.of = Class::shared;
        kind.traffic = Traffic::shared;
    } else {
        kind.of = Class::global;
        kind.traffic = words.has("global") ? Traffic::global : Traffic::generic;
    }
    return kind;
}

Kind plain(Class of) {
    Kind kind;
    kind.of = of;
    return kind;
}

Class arithmetic(const Words &words) {
    const bool fused = words.first() == "fma" || words.first() == "mad";
    if (words.has("f64")) return Class::fp64;
    if (words.has("f32")) return fused ? Class::fma : Class::real;
    for (const char *type : {"f16", "f16x2", "bf16", "bf16x2"}) {
        if (words.has(type)) return Class::real;
    }
    return Class::integer;
}

}  // namespace

const char *name(Class c) {
    static const char *const kNames[] = {"global", "shared", "local", "fma", "mma", "float", "fp64", "convert",
                                         "integer", "move", "control", "barrier", "shuffle", "atomic"};
    static_assert(sizeof kNames / sizeof *kNames == kClasses, "a name for every class");
    return kNames[static_cast<unsigned>(c)];
}

Kind kind_of(const std::string &opcode) {
    static const std::set<std::string> kArithmetic = {
        "add", "sub", "mul", "mad", "fma", "div", "rem", "abs", "neg", "min", "max", "rcp", "sqrt", "rsqrt", "ex2", "lg2",
        "sin", "cos", "tanh", "copysign", "testp", "setp", "set", "selp", "slct", "mul24", "mad24", "sad", "addc", "subc",
        "madc"};
    static const std::set<std::string> kInteger = {"and", "or", "xor", "not", "cnot", "shl", "shr", "shf", "bfe", "bfi",
                                                   "brev", "popc", "clz", "bfind", "prmt", "lop3", "dp4a", "dp2a", "fns"};
    static const std::set<std::string> kMove = {"mov", "cvta", "isspacep"};
    static const std::set<std::string> kControl = {"bra", "brx", "ret", "exit", "call", "trap", "brkpt", "nanosleep"};
    static const std::set<std::string> kBarrier = {"bar", "barrier", "membar", "fence", "griddepcontrol"};
    static const std::set<std::string> kShuffle = {"shfl", "vote", "activemask", "match", "redux", "elect"};
    const Words words(opcode);
    const std::string &op = words.first();
    if (op == "ld" || op == "ldu" || op == "st") return memory(words);
    if (op == "prefetch" || op == "prefetchu") return plain(Class::move);
    if (op == "atom" || op == "red") return plain(Class::atomic);
    // The lower half of a register pair is a register. The unit of fp64 also converts from and to it.
    if (op == "cvt" && words.bytes() == 8 && (words.all()[1] == "u32" || words.all()[1] == "s32") && !words.has("f64")) {
        return plain(Class::move);
    }
    if (op == "cvt") return plain(words.has("f64") ? Class::fp64 : Class::convert);
    if (op == "cp" && words.has("async")) {
        if (words.has("commit_group") || words.has("wait_group") || words.has("wait_all")) return plain(Class::barrier);
        Kind kind = plain(Class::global);
        kind.traffic = Traffic::async_copy;
        return kind;
    }
    if (op == "ldmatrix") {
        Kind kind = plain(Class::shared);
        kind.traffic = Traffic::matrix;
        kind.reads = true;
        return kind;
    }
    if (op == "mma" || op == "wmma") {
        Kind kind = plain(Class::mma);
        for (const std::string &word : words.all()) kind.products = std::max(kind.products, products_of(word));
        kind.tf32 = words.has("tf32");
        if (kind.products != 0) return kind;
    }
    if (kArithmetic.count(op) != 0) {
        Kind kind = plain(arithmetic(words));
        // An exact division or root is a sequence of instructions.
        if ((op == "div" || op == "sqrt" || op == "rcp") && kind.of != Class::integer && words.has("rn")) kind.weight = 10;
        return kind;
    }
    if (kInteger.count(op) != 0) return plain(Class::integer);
    if (kMove.count(op) != 0) return plain(Class::move);
    if (kControl.count(op) != 0) return plain(Class::control);
    if (kBarrier.count(op) != 0) return plain(Class::barrier);
    if (kShuffle.count(op) != 0) return plain(Class::shuffle);
    throw std::runtime_error("no class for the instruction " + opcode);
}

}  // namespace fcm::profile
