#include "source_edit.h"

#include <fstream>
#include <sstream>
#include <stdexcept>

namespace mutation {
namespace {

namespace fs = std::filesystem;

std::string read(const fs::path &file) {
    std::ifstream in(file, std::ios::binary);
    if (!in) throw std::runtime_error("cannot read " + file.string());
    std::ostringstream text;
    text << in.rdbuf();
    return text.str();
}

void write(const fs::path &file, const std::string &text) {
    std::ofstream out(file, std::ios::binary);
    out << text;
    out.close();
    if (!out) throw std::runtime_error("cannot write " + file.string());
}

size_t count(const std::string &text, const std::string &part) {
    size_t times = 0;
    for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++times;
    return times;
}

}  // namespace

void copy_sources(const fs::path &from, const fs::path &to) {
    fs::create_directories(to);
    for (const fs::directory_entry &entry : fs::directory_iterator(from)) {
        if (!entry.is_regular_file()) continue;
        fs::copy_file(entry.path(), to / entry.path().filename(), fs::copy_options::overwrite_existing);
    }
}

void apply(const std::vector<Edit> &edits, const fs::path &folder) {
    for (const Edit &edit : edits) {
        std::string text = read(folder / edit.file);
        const size_t times = edit.search.empty() ? 0 : count(text, edit.search);
        if (times != 1) {
            throw std::runtime_error(edit.file + " has " + std::to_string(times) + " times, not once: " + edit.search);
        }
        if (edit.search == edit.replacement) throw std::runtime_error(edit.file + ": nothing is changed: " + edit.search);
        text.replace(text.find(edit.search), edit.search.size(), edit.replacement);
        write(folder / edit.file, text);
    }
}

}  // namespace mutation
