#include "listing.h"

#include <fstream>
#include <regex>
#include <set>
#include <stdexcept>
#include <utility>

namespace gate {
namespace {

int64_t number(const std::ssub_match &digits) { return digits.matched ? std::stoll(digits.str()) : 0; }

// The lines of one kernel come in this order; each is only accepted where it is expected.
class Reader {
   public:
    void line(const std::string &text) {
        static const std::regex kEntry(R"(Compiling entry function '(\w+)' for 'sm_(\d+)')");
        static const std::regex kFunction(R"(Function properties for (\w+))");
        static const std::regex kFrame(R"((\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads)");
        static const std::regex kUsed(R"(Used (\d+) registers(.*))");
        std::smatch found;
        if (std::regex_search(text, found, kEntry)) {
            finish();
            now_.kernel = found[1];
            now_.arch = static_cast<int>(number(found[2]));
            open_ = true;
        } else if (std::regex_search(text, found, kFunction)) {
            // A function that was not inlined has its own stack frame, which is counted for its kernel as well.
            own_ = open_ && found[1] == now_.kernel;
        } else if (std::regex_search(text, found, kFrame)) {
            if (!open_) return;
            now_.stack += number(found[1]);
            now_.spill_stores += number(found[2]);
            now_.spill_loads += number(found[3]);
            frame_ = frame_ || own_;
        } else if (std::regex_search(text, found, kUsed)) {
            if (!open_) throw std::runtime_error("registers of no kernel: " + text);
            now_.registers = static_cast<int>(number(found[1]));
            use(found[2]);
            used_ = true;
        }
    }

    std::vector<Resources> all() {
        finish();
        return std::move(all_);
    }

   private:
    void use(const std::string &rest) {
        static const std::regex kBarriers(R"(used (\d+) barriers)");
        static const std::regex kShared(R"((\d+) bytes smem)");
        static const std::regex kConstant(R"((\d+) bytes cmem\[\d+\])");
        std::smatch found;
        if (std::regex_search(rest, found, kBarriers)) now_.barriers = static_cast<int>(number(found[1]));
        if (std::regex_search(rest, found, kShared)) now_.shared = number(found[1]);
        for (std::sregex_iterator i(rest.begin(), rest.end(), kConstant), end; i != end; ++i) {
            now_.constant += number((*i)[1]);
        }
    }

    void finish() {
        if (open_) {
            if (!frame_ || !used_) throw std::runtime_error("the listing does not say what " + now_.kernel + " uses");
            all_.push_back(now_);
        }
        now_ = {};
        open_ = own_ = frame_ = used_ = false;
    }

    std::vector<Resources> all_;
    Resources now_;
    bool open_ = false;
    bool own_ = false;
    bool frame_ = false;
    bool used_ = false;
};

}  // namespace

std::vector<Resources> read_listing(std::istream &listing) {
    Reader reader;
    for (std::string text; std::getline(listing, text);) reader.line(text);
    return reader.all();
}

std::vector<Resources> read_listings(const std::vector<std::string> &files) {
    std::vector<Resources> all;
    std::set<std::pair<std::string, int>> seen;
    for (const std::string &file : files) {
        std::ifstream listing(file);
        if (!listing) throw std::runtime_error("cannot read " + file);
        for (Resources &resources : read_listing(listing)) {
            if (!seen.emplace(resources.kernel, resources.arch).second) {
                throw std::runtime_error(resources.kernel + " is compiled twice for sm_" + std::to_string(resources.arch));
            }
            all.push_back(std::move(resources));
        }
    }
    return all;
}

}  // namespace gate
