#include "decode.h"

#include <algorithm>
#include <cstring>
#include <unordered_set>

#include "decoding.h"
#include "thread.h"

namespace fcm::ptx {

namespace {

// ---- control flow

// An infinite loop would otherwise hang the test.
void count_jump(Thread &t, const Instruction &i) {
    if (i.number <= 0 && --t.fuel < 0) throw Mistake("jumps back without end: it waits for what does not happen");
}

void jump(Thread &t, const Instruction &i) {
    count_jump(t, i);
    t.next = &i + i.number;
}
void jump_if(Thread &t, const Instruction &i) {
    if (t.registers[i.slot[0]] == 0) return;
    count_jump(t, i);
    t.next = &i + i.number;
}
void jump_unless(Thread &t, const Instruction &i) {
    if (t.registers[i.slot[0]] != 0) return;
    count_jump(t, i);
    t.next = &i + i.number;
}
void jump_table(Thread &t, const Instruction &i) {
    const std::vector<int64_t> &table = t.frames.back().function->tables[i.extra];
    const uint64_t index = t.registers[i.slot[0]];
    if (index >= table.size()) {
        throw Mistake("jumps to entry " + std::to_string(index) + " of a table of " + std::to_string(table.size()));
    }
    if (table[index] <= 0 && --t.fuel < 0) throw Mistake("jumps back without end: it waits for what does not happen");
    t.next = &i + table[index];
}

// Skips the `number` instructions of a predicated one.
void skip_if(Thread &t, const Instruction &i) {
    if (t.registers[i.slot[0]] != 0) t.next += i.number;
}
void skip_unless(Thread &t, const Instruction &i) {
    if (t.registers[i.slot[0]] == 0) t.next += i.number;
}

void call(Thread &t, const Instruction &i) {
    const Call &what = t.frames.back().function->calls[i.extra];
    if (what.callee == nullptr) throw Mistake("calls " + what.name + ", which the file does not define");
    t.enter(*what.callee, t.next, &what);
}

void leave(Thread &t, const Instruction &) { t.leave(); }
void end(Thread &t, const Instruction &) {
    t.end_without_copies();
    t.state = State::exited;
}
void trap(Thread &, const Instruction &) { throw Mistake("traps"); }
void give_way(Thread &t, const Instruction &) { t.state = State::preempted; }

// ---- one function

class FunctionDecoder {
public:
    FunctionDecoder(const FileText &file, const FunctionText &text, Module &module, Function &function,
                    const Scope &module_scope, const Scope &shared)
        : file_(file), text_(text), function_(function), builder_(file.file, module, function, module_scope),
            shared_(shared) {}

    void run() {
        function_.name = text_.name;
        function_.entry = text_.entry;
        function_.line = text_.line;
        function_.most_threads = text_.most_threads;
        function_.threads = text_.threads;
        parameters();
        for (const Statement &statement : text_.body) {
            switch (statement.kind) {
                case Statement::Kind::open: builder_.open(); break;
                case Statement::Kind::close: builder_.close(); break;
                case Statement::Kind::declaration: declaration(statement.variable); break;
                case Statement::Kind::label: label(statement); break;
                case Statement::Kind::targets: tables_[statement.opcode] = &statement; break;
                case Statement::Kind::instruction: instruction(statement); break;
            }
        }
        Statement last;
        last.opcode = "ret";
        last.line.ptx = text_.line;
        instruction(last);
        resolve();
    }

private:
    void parameters() {
        for (const Variable &variable : text_.parameters) {
            if (variable.align > 16) {
                throw Unreadable(file_.file, variable.line, "a parameter aligned to more than 16 bytes");
            }
            if (function_.entry) {
                Symbol symbol;
                symbol.kind = Symbol::Kind::entry_parameter;
                symbol.offset = (function_.parameter_bytes + variable.align - 1) / variable.align * variable.align;
                symbol.bytes = variable.bytes();
                function_.parameter_bytes = symbol.offset + symbol.bytes;
                function_.parameters.push_back({symbol.offset, symbol.bytes});
                builder_.declare_parameter(variable.name, symbol);
            } else {
                in_frame(variable, function_.parameters);
            }
        }
        for (const Variable &variable : text_.results) in_frame(variable, function_.results);
    }

    void in_frame(const Variable &variable, std::vector<FrameVariable> &into) {
        builder_.declare_in_frame(variable.name, variable.bytes(), variable.align);
        const Symbol *symbol = builder_.find(variable.name);
        into.push_back({symbol->offset, symbol->bytes});
    }

    void declaration(const Variable &variable) {
        if (variable.space == Space::shared) {
            builder_.declare_parameter(variable.name, shared_.at(variable.name));
            return;
        }
        if (variable.align > 16) {
            throw Unreadable(file_.file, variable.line, "a variable aligned to more than 16 bytes");
        }
        builder_.declare(variable);
    }

    void label(const Statement &statement) {
        if (!labels_.emplace(statement.opcode, builder_.position()).second) {
            throw Unreadable(file_.file, statement.line.ptx, "the label " + statement.opcode + " twice");
        }
    }

    void instruction(const Statement &statement) {
        Decoding d(builder_, statement);
        const bool guarded = !statement.guard.empty();
        uint32_t guard = 0;
        if (guarded) {
            Operand operand;
            operand.kind = Operand::Kind::name;
            operand.name = statement.guard;
            guard = d.source(operand, kPredicate);
        }
        if (d.opcode() == "bra") {
            branch(d, statement, guarded, guard);
            return;
        }
        const size_t before = builder_.position();
        if (guarded) d.emit(statement.guard_negated ? skip_if : skip_unless, {guard});
        if (!control(d) && !decode_real(d) && !decode_whole(d) && !decode_compare(d) && !decode_convert(d) &&
            !decode_move(d) && !decode_memory(d) && !decode_copy(d) && !decode_atomic(d) && !decode_collective(d) &&
            !decode_matrix(d)) {
            d.fail("an instruction that this interpreter does not know");
        }
        if (guarded) function_.code[before].number = static_cast<int64_t>(builder_.position() - before - 1);
    }

    void branch(Decoding &d, const Statement &statement, bool guarded, uint32_t guard) {
        d.take("uni");
        d.finish();
        d.expect_operands(1);
        jumps_.push_back({builder_.position(), d.operand(0).name, statement.line.ptx});
        d.emit(!guarded ? jump : statement.guard_negated ? jump_unless : jump_if, {guard});
    }

    bool control(Decoding &d) {
        const std::string &op = d.opcode();
        if (op == "ret") {
            d.take("uni");
            finish(d, leave);
        } else if (op == "exit") {
            finish(d, end);
        } else if (op == "trap" || op == "brkpt") {
            finish(d, trap);
        } else if (op == "nanosleep") {
            d.take_type();
            d.finish();
            d.emit(give_way, {});
        } else if (op == "brx") {
            if (!d.take("idx")) d.fail("only .idx");
            d.take("uni");
            d.finish();
            d.expect_operands(2);
            switches_.push_back({builder_.position(), d.operand(1).name, d.line().ptx});
            d.emit(jump_table, {d.source(0, kWord)});
        } else if (op == "call") {
            decode_call(d);
        } else {
            return false;
        }
        return true;
    }

    static void finish(Decoding &d, Handler handler) {
        d.finish();
        d.expect_operands(0);
        d.emit(handler, {});
    }

    // call (result), name, (arguments)
    void decode_call(Decoding &d) {
        d.take("uni");
        d.finish();
        size_t at = 0;
        Call what;
        const auto variables = [&](const Operand &list, std::vector<FrameVariable> &into) {
            for (const Operand &part : list.parts) {
                const Symbol *symbol = part.kind == Operand::Kind::name ? builder_.find(part.name) : nullptr;
                if (symbol == nullptr ||
                    symbol->kind != Symbol::Kind::frame) d.fail("an argument in the space param expected");
                into.push_back({symbol->offset, symbol->bytes});
            }
        };
        if (d.operand(at).kind == Operand::Kind::list) variables(d.operand(at++), what.results);
        const Operand &callee = d.operand(at++);
        if (callee.kind != Operand::Kind::name || builder_.find(callee.name) != nullptr) d.fail("a call by address");
        what.name = callee.name;
        if (at < d.operands()) {
            if (d.operand(at).kind != Operand::Kind::list) d.fail("arguments expected");
            variables(d.operand(at++), what.arguments);
        }
        if (at != d.operands()) d.fail("a call by address");
        function_.calls.push_back(std::move(what));
        d.emit(call, {}, 0, static_cast<uint32_t>(function_.calls.size() - 1));
    }

    int64_t distance(size_t from, const std::string &name, unsigned line) const {
        const auto found = labels_.find(name);
        if (found == labels_.end()) throw Unreadable(file_.file, line, "the label " + name + " is nowhere");
        return static_cast<int64_t>(found->second) - static_cast<int64_t>(from);
    }

    void resolve() {
        for (const Jump &j : jumps_) function_.code[j.from].number = distance(j.from, j.label, j.line);
        for (const Jump &j : switches_) {
            const auto found = tables_.find(j.label);
            if (found == tables_.end()) throw Unreadable(file_.file, j.line, "the table " + j.label + " is nowhere");
            std::vector<int64_t> table;
            for (const Operand &target : found->second->operands) {
                table.push_back(distance(j.from, target.name, j.line));
            }
            function_.code[j.from].extra = static_cast<uint32_t>(function_.tables.size());
            function_.tables.push_back(std::move(table));
        }
    }

    struct Jump {
        size_t from;
        std::string label;
        unsigned line;
    };

    const FileText &file_;
    const FunctionText &text_;
    Function &function_;
    FunctionBuilder builder_;
    const Scope &shared_;
    std::unordered_map<std::string, size_t> labels_;
    std::unordered_map<std::string, const Statement *> tables_;
    std::vector<Jump> jumps_, switches_;
};

// ---- the module

constexpr uint64_t kFirstShared = 1024;  // so that a null or slightly negative offset is invalid
constexpr uint64_t kGap = 64;            // so that an overrun of a variable does not read the next one

Symbol add_shared(Module &module, const Variable &variable) {
    const uint64_t align = std::max<uint64_t>(variable.align, 16);
    SharedVariable shared;
    shared.name = variable.name;
    shared.offset = (module.shared_bytes + align - 1) / align * align;
    shared.bytes = variable.bytes();
    module.shared_bytes = shared.offset + shared.bytes + kGap;
    Symbol symbol;
    symbol.kind = Symbol::Kind::shared;
    symbol.offset = shared.offset;
    symbol.bytes = shared.bytes;
    symbol.index = module.shared.size();
    module.shared.push_back(std::move(shared));
    return symbol;
}

Symbol add_global(const FileText &text, Module &module, const Variable &variable) {
    GlobalVariable global;
    global.name = variable.name;
    global.bytes = variable.bytes();
    global.align = variable.align;
    global.constant = variable.space == Space::constant;
    global.image.assign(global.bytes, 0);
    const unsigned size = variable.type.bytes();
    if (variable.values.size() * size > global.bytes) throw Unreadable(text.file, variable.line, "too many values");
    for (size_t i = 0; i < variable.values.size(); ++i) {
        const Operand &v = variable.values[i];
        if (v.kind == Operand::Kind::name) {
            if (size != 8) throw Unreadable(text.file, variable.line, "an address in less than 64 bits");
            global.addresses.emplace_back(i * size, v.name);
            std::memcpy(&global.image[i * size], &v.offset, size);
        } else {
            std::memcpy(&global.image[i * size], &v.bits, size);
        }
    }
    Symbol symbol;
    symbol.kind = Symbol::Kind::global;
    symbol.bytes = global.bytes;
    symbol.index = module.globals.size();
    module.globals.push_back(std::move(global));
    return symbol;
}

Scope module_variables(const FileText &text, Module &module) {
    Scope scope;
    for (const Variable &variable : text.variables) {
        Symbol symbol;
        if (variable.space == Space::shared) {
            if (variable.external) symbol.kind = Symbol::Kind::dynamic_shared;
            else symbol = add_shared(module, variable);
        } else if (variable.space == Space::global || variable.space == Space::constant) {
            if (variable.external) throw Unreadable(text.file, variable.line, variable.name + " is defined elsewhere");
            symbol = add_global(text, module, variable);
        } else {
            throw Unreadable(text.file, variable.line, "the variable " + variable.name + " outside a function");
        }
        scope[variable.name] = symbol;
    }
    return scope;
}

// The shared memory of a kernel's callees is part of its block's.
void gather_shared(const Function &function, Function &into, std::unordered_set<const Function *> &seen) {
    if (!seen.insert(&function).second) return;
    for (const size_t index : function.shared) {
        if (std::find(into.shared.begin(), into.shared.end(), index) == into.shared.end()) into.shared.push_back(index);
    }
    into.dynamic_shared = into.dynamic_shared || function.dynamic_shared;
    for (const Call &what : function.calls) {
        if (what.callee != nullptr) gather_shared(*what.callee, into, seen);
    }
}

void connect(const FileText &text, Module &module) {
    for (Function &function : module.functions) {
        for (Call &what : function.calls) {
            const auto found = module.by_name.find(what.name);
            if (found == module.by_name.end()) continue;
            const Function &callee = module.functions[found->second];
            const auto same = [](const std::vector<FrameVariable> &a, const std::vector<FrameVariable> &b) {
                return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(),
                    [](const auto &x, const auto &y) {
                           return x.bytes == y.bytes;
                       });
            };
            if (callee.entry || !same(what.arguments, callee.parameters) || !same(what.results, callee.results)) {
                throw Unreadable(text.file, function.line, function.name + " calls " + what.name +
                    " with other arguments than it takes");
            }
            what.callee = &callee;
        }
    }
    for (Function &function : module.functions) {
        if (!function.entry) continue;
        std::unordered_set<const Function *> seen{&function};
        for (const Call &what : function.calls) {
            if (what.callee != nullptr) gather_shared(*what.callee, function, seen);
        }
    }
}

}  // namespace

void decode(const FileText &text, Module &module) {
    module.file = text.file;
    module.sources = text.sources;
    module.shared_bytes = kFirstShared;
    const Scope scope = module_variables(text, module);

    // Dynamic shared memory follows all static variables of the file, so those are placed first.
    std::vector<const FunctionText *> defined;
    std::vector<Scope> shared;
    for (const FunctionText &function : text.functions) {
        if (!function.defined) continue;
        defined.push_back(&function);
        Scope own;
        for (const Statement &statement : function.body) {
            if (statement.kind != Statement::Kind::declaration || statement.variable.space != Space::shared) continue;
            if (own.count(statement.variable.name) != 0) {
                throw Unreadable(text.file, statement.line.ptx, statement.variable.name + " twice");
            }
            own[statement.variable.name] = add_shared(module, statement.variable);
        }
        shared.push_back(std::move(own));
    }
    module.shared_bytes = (module.shared_bytes + 127) / 128 * 128;

    module.functions.resize(defined.size());
    for (size_t i = 0; i < defined.size(); ++i) {
        FunctionDecoder(text, *defined[i], module, module.functions[i], scope, shared[i]).run();
        if (!module.by_name.emplace(defined[i]->name, i).second) {
            throw Unreadable(text.file, defined[i]->line, defined[i]->name + " twice");
        }
    }
    connect(text, module);
}

}  // namespace fcm::ptx
