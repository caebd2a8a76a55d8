#include "parser.h"

#include <cstdlib>
#include <cstring>

#include "fault.h"
#include "lexer.h"

namespace fcm::ptx {

namespace {

class Parser {
public:
    Parser(std::string_view text, const std::string &file) : tokens_(lex(text, file)) { out_.file = file; }

    FileText run() {
        while (!at_end()) top_level();
        return std::move(out_);
    }

private:
    // ---- tokens
    const Token &peek(size_t ahead = 0) const {
        const size_t index = position_ + ahead;
        return index < tokens_.size() ? tokens_[index] : tokens_.back();
    }
    const Token &take() {
        const Token &token = peek();
        if (position_ + 1 < tokens_.size()) ++position_;
        return token;
    }
    bool at_end() const { return peek().kind == Token::Kind::end; }
    bool accept(std::string_view what) {
        if (!peek().is(what)) return false;
        take();
        return true;
    }
    void expect(std::string_view what) {
        if (!accept(what)) fail("'" + std::string(what) + "' expected before '" + std::string(peek().text) + "'");
    }
    std::string word() {
        if (peek().kind != Token::Kind::word) fail("a name expected before '" + std::string(peek().text) + "'");
        return std::string(take().text);
    }
    [[noreturn]] void fail(const std::string &words) const { throw Unreadable(out_.file, peek().line, words); }

    // ---- numbers
    Operand number() {
        const bool negative = accept("-");
        const Token &token = take();
        if (token.kind != Token::Kind::number) {
            throw Unreadable(out_.file, token.line, "a number expected before '" + std::string(token.text) + "'");
        }
        const std::string text(token.text);
        const char *digits = text.c_str();
        char *end = nullptr;
        Operand result;
        if (text.size() == 10 && text[0] == '0' && (text[1] == 'f' || text[1] == 'F')) {
            result.kind = Operand::Kind::real32;
            result.bits = std::strtoull(digits + 2, &end, 16);
            if (negative) result.bits ^= 1ull << 31;
        } else if (text.size() == 18 && text[0] == '0' && (text[1] == 'd' || text[1] == 'D')) {
            result.kind = Operand::Kind::real64;
            result.bits = std::strtoull(digits + 2, &end, 16);
            if (negative) result.bits ^= 1ull << 63;
        } else if (text.find('.') != std::string::npos) {
            result.kind = Operand::Kind::real64;
            double value = std::strtod(digits, &end);
            if (negative) value = -value;
            std::memcpy(&result.bits, &value, sizeof value);
        } else {
            result.kind = Operand::Kind::integer;
            if (text.size() > 2 && text[0] == '0' && (text[1] == 'b' || text[1] == 'B')) {
                result.bits = std::strtoull(digits + 2, &end, 2);
            } else {
                result.bits = std::strtoull(digits, &end, 0);
            }
            if (end && (*end == 'U' || *end == 'u')) ++end;
            if (negative) result.bits = 0 - result.bits;
        }
        if (!end || *end != '\0') throw Unreadable(out_.file, token.line, "the number '" + text + "'");
        return result;
    }

    uint64_t natural() {
        const Operand value = number();
        if (value.kind != Operand::Kind::integer) fail("a whole number expected");
        return value.bits;
    }

    // ---- the file
    void top_level() {
        const Token &token = peek();
        if (token.is(".version")) {
            take();
            take();
        } else if (token.is(".target")) {
            take();
            do word();
            while (accept(","));
        } else if (token.is(".address_size")) {
            take();
            if (natural() != 64) fail("addresses of 64 bits only");
        } else if (token.is(".file")) {
            file();
        } else if (token.is(".section")) {
            section();
        } else if (token.is(".loc")) {
            location();
        } else if (token.is(".pragma")) {
            pragma();
        } else {
            bool external = false;
            for (;;) {
                if (accept(".extern")) external = true;
                else if (accept(".visible") || accept(".weak") || accept(".common") || accept(".noreturn")) continue;
                else break;
            }
            if (peek().is(".entry") || peek().is(".func")) function();
            else variables(external, out_.variables);
        }
    }

    // .file 1 "name" [, time, size]
    void file() {
        take();
        const unsigned index = static_cast<unsigned>(natural());
        if (peek().kind != Token::Kind::text) fail("the name of a file expected");
        std::string name(take().text);
        // The rest of the path depends on the build machine.
        const size_t slash = name.find_last_of('/');
        out_.sources[index] = slash == std::string::npos ? name : name.substr(slash + 1);
        while (accept(",")) number();
    }

    // Debug information.
    void section() {
        take();
        word();
        expect("{");
        for (int depth = 1; depth > 0;) {
            if (at_end()) fail("a section without end");
            if (peek().is("{")) ++depth;
            if (peek().is("}")) --depth;
            take();
        }
    }

    // .loc file line column [, function_name label [+ n], inlined_at file line column]
    void location() {
        take();
        place_ = Line();
        place_.file = static_cast<unsigned>(natural());
        place_.line = static_cast<unsigned>(natural());
        natural();
        while (accept(",")) {
            const std::string what = word();
            if (what == "function_name") {
                word();
                if (accept("+")) natural();
            } else if (what == "inlined_at") {
                place_.inlined_file = static_cast<unsigned>(natural());
                place_.inlined_line = static_cast<unsigned>(natural());
                natural();
            } else {
                fail(".loc with '" + what + "'");
            }
        }
    }

    // An optimization hint that an interpreter can ignore.
    void pragma() {
        take();
        do {
            if (take().kind != Token::Kind::text) fail("a string expected after .pragma");
        } while (accept(","));
        expect(";");
    }

    // ---- declarations
    // .space [.align n] [.v2|.v4] .type name[n][m]... [= {...}] [, name...] ;
    void variables(bool external, std::vector<Variable> &into) {
        Variable first = specification();
        do {
            Variable variable = first;
            name_and_size(variable);
            variable.external = external || (variable.elements == 0);
            if (accept("=")) values(variable.values);
            into.push_back(std::move(variable));
        } while (accept(","));
        expect(";");
    }

    Variable specification() {
        Variable result;
        result.line = peek().line;
        uint64_t vector = 1;
        while (peek().kind == Token::Kind::word && peek().text[0] == '.') {
            const std::string what = word().substr(1);
            if (what == "reg") result.space = Space::reg;
            else if (what == "param") result.space = Space::param;
            else if (what == "local") result.space = Space::local;
            else if (what == "shared") result.space = Space::shared;
            else if (what == "global") result.space = Space::global;
            else if (what == "const") result.space = Space::constant;
            else if (what == "align") result.align = natural();
            else if (what == "v2") vector = 2;
            else if (what == "v4") vector = 4;
            else if (what == "ptr") pointer_attributes();
            else if (const auto type = parse_type(what)) result.type = *type;
            else fail("a declaration with '." + what + "'");
        }
        if (result.space == Space::none) fail("a declaration expected before '" + std::string(peek().text) + "'");
        if (result.type.bits == 0) fail("a declaration without a type");
        result.elements = vector;
        if (result.align == 0) result.align = std::max<uint64_t>(1, result.type.bytes() * vector);
        return result;
    }

    // .ptr .global .align 4: what a parameter points to, which has no effect on execution.
    void pointer_attributes() {
        if (!accept(".global") && !accept(".shared") && !accept(".local")) accept(".const");
        if (accept(".align")) natural();
    }

    void name_and_size(Variable &variable) {
        variable.line = peek().line;
        variable.name = word();
        if (variable.space == Space::reg && accept("<")) {
            variable.range = natural();
            expect(">");
        }
        while (accept("[")) {
            if (accept("]")) {
                variable.elements = 0;
                continue;
            }
            variable.elements *= natural();
            expect("]");
        }
    }

    void values(std::vector<Operand> &into) {
        if (accept("{")) {
            if (accept("}")) return;
            do values(into);
            while (accept(","));
            expect("}");
            return;
        }
        into.push_back(peek().kind == Token::Kind::word ? name() : number());
    }

    // ---- functions
    void function() {
        FunctionText result;
        result.line = peek().line;
        result.entry = word() == ".entry";
        if (!result.entry && peek().is("(")) parameters(result.results);
        result.name = word();
        if (peek().is("(")) parameters(result.parameters);
        for (;;) {
            if (accept(".maxntid")) result.most_threads = product();
            else if (accept(".reqntid")) result.threads = product();
            else if (accept(".minnctapersm") || accept(".maxnreg") || accept(".maxnctapersm")) natural();
            else if (accept(".noreturn")) continue;
            else break;
        }
        place_ = Line();
        if (!accept(";")) {
            result.defined = true;
            body(result.body);
        }
        out_.functions.push_back(std::move(result));
    }

    uint64_t product() {
        uint64_t result = natural();
        while (accept(",")) result *= natural();
        return result;
    }

    void parameters(std::vector<Variable> &into) {
        expect("(");
        if (accept(")")) return;
        do {
            Variable variable = specification();
            name_and_size(variable);
            if (variable.space != Space::param) fail("a parameter in the space param expected");
            into.push_back(std::move(variable));
        } while (accept(","));
        expect(")");
    }

    void body(std::vector<Statement> &into) {
        expect("{");
        for (int depth = 1; depth > 0;) {
            if (at_end()) fail("a function without end");
            Statement statement;
            statement.line = place_;
            statement.line.ptx = peek().line;
            if (accept("{")) {
                ++depth;
                statement.kind = Statement::Kind::open;
                into.push_back(std::move(statement));
            } else if (accept("}")) {
                if (--depth > 0) {
                    statement.kind = Statement::Kind::close;
                    into.push_back(std::move(statement));
                }
            } else if (peek().is(".loc")) {
                location();
            } else if (peek().is(".pragma")) {
                pragma();
            } else if (peek().is(".section")) {
                section();
            } else if (peek().is(".file")) {
                file();
            } else if (peek().kind == Token::Kind::word && peek().text[0] == '.') {
                std::vector<Variable> declared;
                variables(false, declared);
                for (Variable &variable : declared) {
                    Statement one;
                    one.kind = Statement::Kind::declaration;
                    one.line = statement.line;
                    one.variable = std::move(variable);
                    into.push_back(std::move(one));
                }
            } else if (peek().kind == Token::Kind::word && peek(1).is(":")) {
                statement.opcode = word();
                take();
                statement.kind = Statement::Kind::label;
                if (accept(".branchtargets")) {
                    statement.kind = Statement::Kind::targets;
                    do statement.operands.push_back(name());
                    while (accept(","));
                    expect(";");
                }
                into.push_back(std::move(statement));
            } else {
                instruction(statement);
                into.push_back(std::move(statement));
            }
        }
    }

    void instruction(Statement &statement) {
        if (accept("@")) {
            statement.guard_negated = accept("!");
            statement.guard = word();
        }
        statement.line.ptx = peek().line;
        statement.opcode = word();
        if (accept(";")) return;
        do statement.operands.push_back(operand());
        while (accept(","));
        expect(";");
    }

    // ---- operands
    Operand operand() {
        Operand result;
        if (accept("{")) {
            result.kind = Operand::Kind::vector;
            do result.parts.push_back(operand());
            while (accept(","));
            expect("}");
            return result;
        }
        if (accept("(")) {
            result.kind = Operand::Kind::list;
            if (accept(")")) return result;
            do result.parts.push_back(operand());
            while (accept(","));
            expect(")");
            return result;
        }
        if (accept("[")) {
            result.kind = Operand::Kind::address;
            if (peek().kind == Token::Kind::word) {
                result.name = word();
                result.offset = offset();
            } else {
                result.offset = static_cast<int64_t>(natural());
            }
            expect("]");
            return result;
        }
        if (accept("!")) {
            result = name();
            result.negated = true;
            return result;
        }
        if (peek().kind != Token::Kind::word) return number();
        if (peek().is("_")) {
            take();
            return maybe_pair(result);
        }
        return maybe_pair(name());
    }

    Operand maybe_pair(Operand first) {
        if (!accept("|")) return first;
        Operand result;
        result.kind = Operand::Kind::pair;
        result.parts.push_back(std::move(first));
        if (peek().is("_")) {
            take();
            result.parts.emplace_back();
        } else {
            result.parts.push_back(name());
        }
        return result;
    }

    // name, name+8, generic(name)+8
    Operand name() {
        Operand result;
        result.kind = Operand::Kind::name;
        result.name = word();
        if (result.name == "generic" && accept("(")) {
            result.name = word();
            expect(")");
        }
        result.offset = offset();
        return result;
    }

    int64_t offset() {
        if (accept("+")) return static_cast<int64_t>(natural());
        if (peek().is("-")) return static_cast<int64_t>(natural());
        return 0;
    }

    std::vector<Token> tokens_;
    size_t position_ = 0;
    Line place_;
    FileText out_;
};

}  // namespace

FileText parse(std::string_view text, const std::string &file) { return Parser(text, file).run(); }

}  // namespace fcm::ptx
