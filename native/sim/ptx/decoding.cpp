#include "decoding.h"

#include <cstring>

#include "bits.h"
#include "memory.h"
#include "thread.h"

namespace fcm::ptx {

namespace {

// The value of an unwritten register: conspicuous as an integer, and NaN in both widths.
constexpr uint64_t kUnwritten = 0xffff'fbad'ffff'fbad;

struct SpecialName {
    const char *name;
    Special special;
};
constexpr SpecialName kSpecials[] = {
    {"%tid.x", Special::tid_x}, {"%tid.y", Special::tid_y}, {"%tid.z", Special::tid_z},
    {"%ntid.x", Special::ntid_x}, {"%ntid.y", Special::ntid_y}, {"%ntid.z", Special::ntid_z},
    {"%ctaid.x", Special::ctaid_x}, {"%ctaid.y", Special::ctaid_y}, {"%ctaid.z", Special::ctaid_z},
    {"%nctaid.x", Special::nctaid_x}, {"%nctaid.y", Special::nctaid_y}, {"%nctaid.z", Special::nctaid_z},
    {"%laneid", Special::laneid}, {"%warpid", Special::warpid}, {"%nwarpid", Special::nwarpid},
    {"%lanemask_eq", Special::lanemask_eq}, {"%lanemask_lt", Special::lanemask_lt},
    {"%lanemask_le", Special::lanemask_le}, {"%lanemask_gt", Special::lanemask_gt},
    {"%lanemask_ge", Special::lanemask_ge}, {"%dynamic_smem_size", Special::dynamic_smem_size},
    {"%total_smem_size", Special::total_smem_size},
};

void negate_predicate(Thread &t, const Instruction &i) { t.registers[i.slot[0]] = t.registers[i.slot[1]] == 0; }

}  // namespace

FunctionBuilder::FunctionBuilder(const std::string &file, Module &module, Function &function, const Scope &module_scope)
    : file_(file), module_(module), function_(function), module_scope_(module_scope) {
    scopes_.emplace_back();
}

void FunctionBuilder::open() { scopes_.emplace_back(); }
void FunctionBuilder::close() { scopes_.pop_back(); }

uint32_t FunctionBuilder::new_slot(uint64_t image) {
    function_.image.push_back(image);
    return static_cast<uint32_t>(function_.image.size() - 1);
}

void FunctionBuilder::declare(const Variable &variable) {
    if (variable.space == Space::reg) {
        if (variable.type.bits == 8) throw Unreadable(file_, variable.line, "a register of 8 bits");
        Symbol symbol;
        symbol.type = variable.type;
        if (variable.range == 0) {
            symbol.slot = new_slot(kUnwritten & low_bits(variable.type.bits));
            scopes_.back()[variable.name] = symbol;
        }
        for (uint64_t i = 0; i < variable.range; ++i) {
            symbol.slot = new_slot(kUnwritten & low_bits(variable.type.bits));
            scopes_.back()[variable.name + std::to_string(i)] = symbol;
        }
    } else if (variable.space == Space::param || variable.space == Space::local) {
        declare_in_frame(variable.name, variable.bytes(), variable.align);
    } else {
        throw Unreadable(file_, variable.line, "the variable " + variable.name + " in this space within a function");
    }
}

void FunctionBuilder::declare_in_frame(const std::string &name, uint64_t bytes, uint64_t align) {
    Symbol symbol;
    symbol.kind = Symbol::Kind::frame;
    symbol.offset = (function_.frame_bytes + align - 1) / align * align;
    symbol.bytes = bytes;
    function_.frame_bytes = symbol.offset + bytes;
    scopes_.back()[name] = symbol;
}

void FunctionBuilder::declare_parameter(const std::string &name, Symbol symbol) { scopes_.back()[name] = symbol; }

const Symbol *FunctionBuilder::find(const std::string &name) const {
    for (size_t i = scopes_.size(); i-- > 0;) {
        const auto found = scopes_[i].find(name);
        if (found != scopes_[i].end()) return &found->second;
    }
    const auto found = module_scope_.find(name);
    return found == module_scope_.end() ? nullptr : &found->second;
}

uint32_t FunctionBuilder::constant(uint64_t bits) {
    const auto found = constants_.find(bits);
    if (found != constants_.end()) return found->second;
    return constants_[bits] = new_slot(bits);
}

uint32_t FunctionBuilder::scratch() { return new_slot(0); }

uint32_t FunctionBuilder::special(const std::string &name) {
    if (name == "WARP_SZ") return constant(32);
    const auto found = specials_.find(name);
    if (found != specials_.end()) return found->second;
    for (const SpecialName &s : kSpecials) {
        if (name != s.name) continue;
        const uint32_t slot = new_slot(0);
        function_.specials.push_back({slot, s.special});
        return specials_[name] = slot;
    }
    return ~0u;
}

uint32_t FunctionBuilder::address_of(const Symbol &symbol, int64_t offset) {
    const uint64_t at = symbol.offset + static_cast<uint64_t>(offset);
    switch (symbol.kind) {
        case Symbol::Kind::entry_parameter: return constant(at);
        case Symbol::Kind::shared: {
            bool known = false;
            for (const size_t index : function_.shared) known = known || index == symbol.index;
            if (!known) function_.shared.push_back(symbol.index);
            return constant(at);
        }
        case Symbol::Kind::dynamic_shared:
            function_.dynamic_shared = true;
            return constant(module_.shared_bytes + static_cast<uint64_t>(offset));
        case Symbol::Kind::frame:
        case Symbol::Kind::global: break;
        case Symbol::Kind::reg: return symbol.slot;
    }
    const bool frame = symbol.kind == Symbol::Kind::frame;
    const std::string key = (frame ? "frame " : "global ") + std::to_string(symbol.index) + " " + std::to_string(at);
    const auto found = addresses_.find(key);
    if (found != addresses_.end()) return found->second;
    const uint32_t slot = new_slot(0);
    if (frame) function_.frame_slots.push_back({slot, at});
    else function_.global_slots.push_back({slot, symbol.index, static_cast<uint64_t>(offset)});
    return addresses_[key] = slot;
}

void FunctionBuilder::emit(const Instruction &instruction, const Line &line) {
    function_.code.push_back(instruction);
    function_.code.back().line = line.ptx;
    function_.lines.push_back(line);
}

Decoding::Decoding(FunctionBuilder &function, const Statement &statement) : function_(function), statement_(statement) {
    // "ld.global.L1::evict_last.f32" is an opcode and its modifiers; only single separators split them.
    std::string word;
    for (const char c : statement.opcode + ".") {
        if (c != '.') {
            word += c;
            continue;
        }
        if (opcode_.empty()) opcode_ = word;
        else modifiers_.push_back(word);
        word.clear();
    }
    taken_.resize(modifiers_.size());
}

void Decoding::fail(const std::string &words) const {
    throw Unreadable(function_.file(), statement_.line.ptx, statement_.opcode + ": " + words);
}

bool Decoding::take(std::string_view modifier) {
    for (size_t i = 0; i < modifiers_.size(); ++i) {
        if (!taken_[i] && modifiers_[i] == modifier) {
            taken_[i] = true;
            return true;
        }
    }
    return false;
}

Type Decoding::take_type() {
    for (size_t i = 0; i < modifiers_.size(); ++i) {
        if (taken_[i]) continue;
        if (const auto type = parse_type(modifiers_[i])) {
            taken_[i] = true;
            return *type;
        }
    }
    fail("no type that this interpreter knows");
}

std::optional<Type> Decoding::last_type() const {
    for (size_t i = modifiers_.size(); i-- > 0;) {
        if (const auto type = parse_type(modifiers_[i])) return type;
    }
    return std::nullopt;
}

bool Decoding::more_modifiers() const {
    for (const bool taken : taken_) {
        if (!taken) return true;
    }
    return false;
}

std::string_view Decoding::peek() const {
    for (size_t i = 0; i < modifiers_.size(); ++i) {
        if (!taken_[i]) return modifiers_[i];
    }
    return {};
}

void Decoding::finish() const {
    if (more_modifiers()) fail("the modifier ." + std::string(peek()) + " is unknown here");
}

const Operand &Decoding::operand(size_t index) const {
    if (index >= statement_.operands.size()) fail("too few operands");
    return statement_.operands[index];
}

void Decoding::expect_operands(size_t count) const {
    if (statement_.operands.size() != count) fail(std::to_string(count) + " operands expected");
}

uint64_t Decoding::literal(const Operand &operand, Type type) const {
    switch (operand.kind) {
        case Operand::Kind::integer:
            if (type.kind == Kind::real) fail("a whole number where a floating point one belongs");
            return operand.bits & low_bits(type.bits);
        case Operand::Kind::real32:
            if (type.bits == 32) return operand.bits;
            if (type.is(Kind::real, 64)) return raw(static_cast<double>(value<float>(operand.bits)));
            break;
        case Operand::Kind::real64:
            if (type.bits == 64) return operand.bits;
            if (type.is(Kind::real, 32)) return raw(static_cast<float>(value<double>(operand.bits)));
            break;
        default: break;
    }
    fail("a number that does not fit the type");
}

uint32_t Decoding::source(const Operand &operand, Type type) {
    if (operand.kind != Operand::Kind::name) return function_.constant(literal(operand, type));
    if (operand.negated) fail("a negated operand");
    if (const Symbol *symbol = function_.find(operand.name)) {
        if (symbol->kind != Symbol::Kind::reg) {
            if (type.bits < 32) fail("the address of " + operand.name + " in " + std::to_string(type.bits) + " bits");
            return function_.address_of(*symbol, operand.offset);
        }
        if (symbol->type.bits != type.bits) {
            fail(operand.name + " has " + std::to_string(symbol->type.bits) + " bits, not " +
                std::to_string(type.bits));
        }
        if (operand.offset != 0) fail("a register with an offset");
        return symbol->slot;
    }
    const uint32_t slot = function_.special(operand.name);
    if (slot == ~0u) fail("nobody knows " + operand.name);
    return slot;
}

uint32_t Decoding::source_or_wider(const Operand &operand, Type type) {
    if (operand.kind == Operand::Kind::name) {
        const Symbol *symbol = function_.find(operand.name);
        const bool wider = symbol != nullptr && symbol->kind == Symbol::Kind::reg && symbol->type.bits > type.bits;
        if (wider) return symbol->slot;
    }
    return source(operand, type);
}

uint32_t Decoding::target(const Operand &operand, Type type) {
    unsigned width = 0;
    const uint32_t slot = target_or_wider(operand, type, width);
    if (width != type.bits) {
        fail(operand.name + " has " + std::to_string(width) + " bits, not " + std::to_string(type.bits));
    }
    return slot;
}

uint32_t Decoding::target_or_wider(const Operand &operand, Type type, unsigned &width) {
    width = type.bits;
    if (operand.kind == Operand::Kind::sink) return function_.scratch();
    if (operand.kind != Operand::Kind::name || operand.negated) fail("a register expected as target");
    const Symbol *symbol = function_.find(operand.name);
    if (symbol == nullptr || symbol->kind != Symbol::Kind::reg) fail(operand.name + " is no register");
    width = symbol->type.bits;
    if (width < type.bits) fail(operand.name + " has only " + std::to_string(width) + " bits");
    return symbol->slot;
}

uint32_t Decoding::predicate(const Operand &operand) {
    Operand plain = operand;
    plain.negated = false;
    const uint32_t slot = source(plain, kPredicate);
    if (!operand.negated) return slot;
    const uint32_t negated = function_.scratch();
    emit(negate_predicate, {negated, slot});
    return negated;
}

uint64_t Decoding::immediate(size_t index) const {
    const Operand &o = operand(index);
    if (o.kind != Operand::Kind::integer) fail("a constant expected");
    return o.bits;
}

Address Decoding::address(size_t index) {
    const Operand &o = operand(index);
    if (o.kind != Operand::Kind::address) fail("an address expected");
    Address result;
    result.offset = o.offset;
    if (o.name.empty()) {
        result.base = function_.constant(0);
        return result;
    }
    const Symbol *symbol = function_.find(o.name);
    if (symbol == nullptr) fail("nobody knows " + o.name);
    result.base = function_.address_of(*symbol, 0);
    if (symbol->kind != Symbol::Kind::reg) {
        result.symbol = symbol;
    } else if (symbol->type.bits < 32) {
        fail("an address in " + std::to_string(symbol->type.bits) + " bits");
    }
    return result;
}

Instruction &Decoding::emit(Handler handler, std::initializer_list<uint32_t> slots, int64_t number, uint32_t extra) {
    Instruction instruction;
    instruction.run = handler;
    size_t i = 0;
    for (const uint32_t slot : slots) instruction.slot[i++] = slot;
    instruction.number = number;
    instruction.extra = extra;
    function_.emit(instruction, statement_.line);
    return function_.function().code.back();
}

}  // namespace fcm::ptx
