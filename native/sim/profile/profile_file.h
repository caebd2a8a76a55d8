// The file of a profile: a JSON object per line, as json_of writes them.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace fcm::profile {

// Members of objects within have the keys of both, as in "loop.bank_conflicts".
struct Profile {
    std::string title, kernel;
    std::map<std::string, double> numbers;
    std::map<std::string, std::string> words;

    double number(const std::string &key) const;  // throws std::runtime_error if there is none
    bool has(const std::string &key) const { return numbers.count(key) != 0; }
};

// Throws std::runtime_error with file and line of what cannot be read.
std::vector<Profile> read_profiles(const std::string &file);
Profile read_profile(const std::string &line);

}  // namespace fcm::profile
