#include "lexer.h"

#include "fault.h"

namespace fcm::ptx {

namespace {

bool digit(char c) { return c >= '0' && c <= '9'; }
bool letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$'; }

class Lexer {
public:
    Lexer(std::string_view text, const std::string &file) : text_(text), file_(file) {}

    std::vector<Token> run() {
        std::vector<Token> tokens;
        tokens.reserve(text_.size() / 4);
        for (;;) {
            skip_blanks();
            Token token = next();
            tokens.push_back(token);
            if (token.kind == Token::Kind::end) return tokens;
        }
    }

private:
    char at(size_t ahead) const { return position_ + ahead < text_.size() ? text_[position_ + ahead] : '\0'; }

    void skip_blanks() {
        while (position_ < text_.size()) {
            const char c = text_[position_];
            if (c == '\n') {
                ++line_;
                ++position_;
            } else if (c == ' ' || c == '\t' || c == '\r') {
                ++position_;
            } else if (c == '/' && at(1) == '/') {
                while (position_ < text_.size() && text_[position_] != '\n') ++position_;
            } else if (c == '/' && at(1) == '*') {
                const unsigned began = line_;
                position_ += 2;
                while (!(at(0) == '*' && at(1) == '/')) {
                    if (position_ >= text_.size()) throw Unreadable(file_, began, "a comment without end");
                    if (text_[position_] == '\n') ++line_;
                    ++position_;
                }
                position_ += 2;
            } else {
                return;
            }
        }
    }

    Token token(Token::Kind kind, size_t length) {
        Token result{kind, text_.substr(position_, length), line_};
        position_ += length;
        return result;
    }

    Token next() {
        if (position_ >= text_.size()) return token(Token::Kind::end, 0);
        const char c = text_[position_];
        if (c == '"') return quoted();
        if (digit(c)) return number();
        if (letter(c) || (c == '%' && letter(at(1))) || (c == '.' && letter(at(1)))) return word();
        if (std::string_view("{}[](),;:|@!<>=+-").find(c) != std::string_view::npos) return token(Token::Kind::mark, 1);
        throw Unreadable(file_, line_, std::string("the character '") + c + "'");
    }

    Token quoted() {
        size_t length = 1;
        while (at(length) != '"') {
            if (at(length) == '\0' || at(length) == '\n') throw Unreadable(file_, line_, "a string without end");
            ++length;
        }
        Token result{Token::Kind::text, text_.substr(position_ + 1, length - 1), line_};
        position_ += length + 1;
        return result;
    }

    Token number() {
        size_t length = 1;
        while (digit(at(length)) || letter(at(length)) || (at(length) == '.' && digit(at(length + 1)))) ++length;
        return token(Token::Kind::number, length);
    }

    Token word() {
        size_t length = 1;
        for (;;) {
            if (digit(at(length)) || letter(at(length)) || at(length) == '.') ++length;
            // A cache hint such as "L1::evict_last" is one modifier; a single colon, as after a label, ends the word.
            else if (at(length) == ':' && at(length + 1) == ':') length += 2;
            else break;
        }
        return token(Token::Kind::word, length);
    }

    std::string_view text_;
    const std::string &file_;
    size_t position_ = 0;
    unsigned line_ = 1;
};

}  // namespace

std::vector<Token> lex(std::string_view text, const std::string &file) { return Lexer(text, file).run(); }

}  // namespace fcm::ptx
