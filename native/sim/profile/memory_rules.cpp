#include "memory_rules.h"

#include <algorithm>

namespace fcm::profile {

namespace {

constexpr unsigned kBanks = 32, kBankBytes = 4, kSectorBytes = 32;

// The most distinct words that any bank has to give to lanes [first, first + count).
uint64_t of_part(const WarpAccess &access, unsigned first, unsigned count) {
    std::array<std::array<uint64_t, 32>, kBanks> words;
    std::array<unsigned, kBanks> found{};
    uint64_t most = 0;
    const unsigned words_a_lane = std::max(1u, access.bytes / kBankBytes);
    for (unsigned lane = first; lane < first + count; ++lane) {
        if ((access.active >> lane & 1) == 0) continue;
        for (unsigned k = 0; k < words_a_lane; ++k) {
            const uint64_t word = access.address[lane] / kBankBytes + k;
            auto &bank = words[word % kBanks];
            unsigned &in_bank = found[word % kBanks];
            if (std::find(bank.begin(), bank.begin() + in_bank, word) != bank.begin() + in_bank) continue;
            bank[in_bank++] = word;
            most = std::max<uint64_t>(most, in_bank);
        }
    }
    return most;
}

}  // namespace

Wavefronts shared_wavefronts(const WarpAccess &access) {
    const unsigned parts = std::max(1u, access.bytes / kBankBytes);
    const unsigned lanes = 32 / parts;
    Wavefronts result;
    for (unsigned part = 0; part < parts; ++part) {
        const uint64_t taken = of_part(access, part * lanes, lanes);
        result.taken += taken;
        result.least += taken != 0;
    }
    return result;
}

Sectors global_sectors(const WarpAccess &access) {
    std::array<uint64_t, 32> addresses;
    size_t count = 0;
    for (unsigned lane = 0; lane < 32; ++lane) {
        if (access.active >> lane & 1) addresses[count++] = access.address[lane];
    }
    std::sort(addresses.begin(), addresses.begin() + count);
    count = static_cast<size_t>(std::unique(addresses.begin(), addresses.begin() + count) - addresses.begin());
    Sectors result;
    for (size_t i = 0; i < count; ++i) {
        const uint64_t last = (addresses[i] + access.bytes - 1) / kSectorBytes;
        for (uint64_t sector = addresses[i] / kSectorBytes; sector <= last; ++sector) {
            if (result.touched != 0 && result.number[result.touched - 1] >= sector) continue;
            result.number[result.touched++] = sector;
        }
    }
    result.least = (count * access.bytes + kSectorBytes - 1) / kSectorBytes;
    return result;
}

}  // namespace fcm::profile
