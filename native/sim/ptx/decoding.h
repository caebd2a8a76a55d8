// The context for decoding one instruction: access to its modifiers, and slots for its operands.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "code.h"
#include "fault.h"

namespace fcm::ptx {

struct Symbol {
    enum class Kind { reg, frame, entry_parameter, shared, dynamic_shared, global };
    Kind kind = Kind::reg;
    uint32_t slot = 0;  // of a register
    Type type;
    uint64_t offset = 0, bytes = 0;
    size_t index = 0;  // of a shared or global variable in the module
};

using Scope = std::unordered_map<std::string, Symbol>;

// An address operand: a slot with the base, and an offset.
struct Address {
    uint32_t base = 0;
    int64_t offset = 0;
    const Symbol *symbol = nullptr;  // if the base is a variable and not a register
};

// The function that is being decoded.
class FunctionBuilder {
public:
    FunctionBuilder(const std::string &file, Module &module, Function &function, const Scope &module_scope);

    void open();
    void close();
    void declare(const Variable &variable);
    void declare_in_frame(const std::string &name, uint64_t bytes, uint64_t align);
    void declare_parameter(const std::string &name, Symbol symbol);
    const Symbol *find(const std::string &name) const;

    uint32_t constant(uint64_t bits);
    uint32_t scratch();
    uint32_t special(const std::string &name);  // ~0u if there is no such register
    // The slot with a variable's address in its own state space.
    uint32_t address_of(const Symbol &symbol, int64_t offset);

    void emit(const Instruction &instruction, const Line &line);
    size_t position() const { return function_.code.size(); }

    Module &module() { return module_; }
    Function &function() { return function_; }
    const std::string &file() const { return file_; }

private:
    uint32_t new_slot(uint64_t image);

    const std::string &file_;
    Module &module_;
    Function &function_;
    const Scope &module_scope_;
    std::vector<Scope> scopes_;
    std::unordered_map<uint64_t, uint32_t> constants_;
    std::unordered_map<std::string, uint32_t> specials_;
    std::unordered_map<std::string, uint32_t> addresses_;
};

// One instruction. Modifiers are consumed one after another; one that is left over is an error.
class Decoding {
public:
    Decoding(FunctionBuilder &function, const Statement &statement);

    const std::string &opcode() const { return opcode_; }
    [[noreturn]] void fail(const std::string &words) const;

    // ---- modifiers
    bool take(std::string_view modifier);
    Type take_type();
    std::optional<Type> last_type() const;  // the last type modifier, in which the arithmetic is done
    bool more_modifiers() const;
    std::string_view peek() const;  // the first that is left
    void finish() const;            // fails if a modifier or an operand is left over

    // ---- operands
    size_t operands() const { return statement_.operands.size(); }
    const Operand &operand(size_t index) const;
    void expect_operands(size_t count) const;
    uint32_t source(const Operand &operand, Type type);
    uint32_t source(size_t index, Type type) { return source(operand(index), type); }
    // A source whose register may be wider than the type (st, cvt).
    uint32_t source_or_wider(const Operand &operand, Type type);
    uint32_t target(const Operand &operand, Type type);
    uint32_t target(size_t index, Type type) { return target(operand(index), type); }
    uint32_t target_or_wider(const Operand &operand, Type type, unsigned &width);
    uint32_t predicate(const Operand &operand);  // a source, which may be negated
    uint64_t immediate(size_t index) const;
    Address address(size_t index);

    // ---- result
    FunctionBuilder &function() { return function_; }
    const Line &line() const { return statement_.line; }
    Instruction &emit(Handler handler, std::initializer_list<uint32_t> slots, int64_t number = 0, uint32_t extra = 0);

private:
    uint64_t literal(const Operand &operand, Type type) const;

    FunctionBuilder &function_;
    const Statement &statement_;
    std::string opcode_;
    std::vector<std::string> modifiers_;
    std::vector<bool> taken_;
};

// The families of instructions. Each returns whether the opcode belongs to it.
bool decode_whole(Decoding &d);
bool decode_real(Decoding &d);
bool decode_compare(Decoding &d);
bool decode_convert(Decoding &d);
bool decode_move(Decoding &d);
bool decode_memory(Decoding &d);
bool decode_copy(Decoding &d);
bool decode_atomic(Decoding &d);
bool decode_collective(Decoding &d);
bool decode_matrix(Decoding &d);

}  // namespace fcm::ptx
