#include "profile_file.h"

#include <cstdlib>
#include <fstream>
#include <stdexcept>

namespace fcm::profile {

namespace {

// Objects, words without escapes and numbers: what json_of writes.
class Reader {
public:
    Reader(const std::string &text, Profile &into) : text_(text), into_(into) {}

    void run() {
        object("");
        if (skip() != text_.size()) fail();
    }

private:
    size_t skip() {
        while (at_ < text_.size() && text_[at_] == ' ') ++at_;
        return at_;
    }
    bool take(char c) {
        if (skip() == text_.size() || text_[at_] != c) return false;
        ++at_;
        return true;
    }
    void need(char c) {
        if (!take(c)) fail();
    }
    [[noreturn]] void fail() const { throw std::runtime_error("not a profile, at character " + std::to_string(at_ + 1)); }

    std::string word() {
        need('"');
        const size_t end = text_.find('"', at_);
        if (end == std::string::npos) fail();
        const std::string result = text_.substr(at_, end - at_);
        at_ = end + 1;
        return result;
    }

    void object(const std::string &prefix) {
        need('{');
        if (take('}')) return;
        do {
            const std::string key = prefix + word();
            need(':');
            value(key);
        } while (take(','));
        need('}');
    }

    void value(const std::string &key) {
        if (skip() == text_.size()) fail();
        if (text_[at_] == '{') {
            object(key + ".");
        } else if (text_[at_] == '"') {
            into_.words[key] = word();
        } else {
            char *end = nullptr;
            into_.numbers[key] = std::strtod(text_.c_str() + at_, &end);
            if (end == text_.c_str() + at_) fail();
            at_ = static_cast<size_t>(end - text_.c_str());
        }
    }

    const std::string &text_;
    Profile &into_;
    size_t at_ = 0;
};

}  // namespace

double Profile::number(const std::string &key) const {
    const auto found = numbers.find(key);
    if (found == numbers.end()) throw std::runtime_error(kernel + " in " + title + " has no " + key);
    return found->second;
}

Profile read_profile(const std::string &line) {
    Profile profile;
    Reader(line, profile).run();
    profile.title = profile.words["case"];
    profile.kernel = profile.words["kernel"];
    if (profile.title.empty() || profile.kernel.empty()) throw std::runtime_error("a profile without case or kernel");
    return profile;
}

std::vector<Profile> read_profiles(const std::string &file) {
    std::ifstream in(file);
    if (!in) throw std::runtime_error("cannot read " + file);
    std::vector<Profile> all;
    std::string line;
    for (int number = 1; std::getline(in, line); ++number) {
        try {
            all.push_back(read_profile(line));
        } catch (const std::runtime_error &e) {
            throw std::runtime_error(file + ":" + std::to_string(number) + ": " + e.what());
        }
    }
    return all;
}

}  // namespace fcm::profile
