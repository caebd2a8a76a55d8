// The syntax tree of a PTX file, as passed from the parser to the decoder.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "types.h"

namespace fcm::ptx {

struct Operand {
    enum class Kind { name, integer, real32, real64, address, vector, pair, list, sink };
    Kind kind = Kind::sink;
    std::string name;     // of a register, a variable or a label; the base of an address (empty for an absolute one)
    bool negated = false;  // !%p
    uint64_t bits = 0;    // of a number, two's complement
    int64_t offset = 0;   // [name+offset], name+offset
    std::vector<Operand> parts;
};

// The location of an instruction, in the PTX file and in the original source.
struct Line {
    unsigned ptx = 0;
    unsigned file = 0, line = 0;                  // from .loc; 0 if unknown
    unsigned inlined_file = 0, inlined_line = 0;  // the location where it was inlined
};

enum class Space : uint8_t { none, reg, param, local, shared, global, constant };

struct Variable {
    Space space = Space::none;
    Type type;
    std::string name;
    unsigned line = 0;
    uint64_t elements = 1;  // of `type`, with vectors counted by element
    uint64_t align = 0;
    bool external = false;  // its size is not declared here (dynamic shared memory)
    uint64_t range = 0;     // %r<n> declares n registers
    std::vector<Operand> values;

    uint64_t bytes() const { return elements * type.bytes(); }
};

struct Statement {
    enum class Kind { instruction, label, declaration, targets, open, close };
    Kind kind = Kind::instruction;
    Line line;
    std::string guard;  // predicate register, if any
    bool guard_negated = false;
    std::string opcode;  // the whole word; a label's name
    std::vector<Operand> operands;
    Variable variable;
};

struct FunctionText {
    std::string name;
    unsigned line = 0;
    bool entry = false;
    bool defined = false;
    std::vector<Variable> results, parameters;
    std::vector<Statement> body;
    uint64_t most_threads = 0;  // .maxntid, as a product; 0 if not given
    uint64_t threads = 0;       // .reqntid
};

struct FileText {
    std::string file;
    std::map<unsigned, std::string> sources;  // from .file
    std::vector<Variable> variables;
    std::vector<FunctionText> functions;
};

}  // namespace fcm::ptx
