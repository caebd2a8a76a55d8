// Every operation of the table on the device under test: comparison with its reference, bit-identical results, and refused
// arguments.
#include <array>
#include <map>
#include <set>

#include "../common/functions.h"
#include "placed.h"

namespace {

using table::Operand;
using table::Operation;
using table::operations;
using table::Parameters;
using table::Placement;
using table::Size;
using table::Use;

bool interpreted() {
    const char *engine = std::getenv("FEDCOMUON_CUDASIM_ENGINE");
    return engine != nullptr && std::strcmp(engine, "ptx") == 0;
}

bool strided(const std::vector<Operand> &operands) {
    return std::any_of(operands.begin(), operands.end(), [](const Operand &o) { return o.strided; });
}

std::string words(const Operation &operation, const Size &size, const Parameters &settings) {
    std::string all = operation.function() + " of " + std::to_string(size.clients) + " x " + std::to_string(size.n) + ", settings";
    for (const long double value : settings) all += " " + std::to_string(static_cast<double>(value));
    return all;
}

// A slow operation on long vectors is not tested with every setting at every size, but with each setting at some size.
std::vector<Parameters> some_settings(const Operation &operation, const Size &size, size_t number) {
    const std::vector<Parameters> all = operation.settings(size);
    if (kSanitized && size.n > 1000 && size.clients > 5) return {};  // nothing new for a sanitizer
    if (!operation.slow || size.n <= 1000 || size.clients <= 2) return all;
    std::vector<Parameters> some{all[number % all.size()]};
    if (size.clients <= 5 && all.size() > 1) some.push_back(all[(number + 1) % all.size()]);
    return some;
}

}  // namespace

// Workspace queries and preparations have no data; the entries of the operations that need the workspace call them.
TEST(the_table_has_every_operation) {
    std::set<std::string> entries;
    for (const Operation &operation : operations()) entries.insert(operation.name);
    std::set<std::string> listed;
#define LISTED(name) listed.insert(#name);
    FCM_EVERY_OPERATION(LISTED)
#undef LISTED
    for (const std::string &name : listed) {
        const auto ends_with = [&name](const std::string &end) {
            return name.size() > end.size() && name.compare(name.size() - end.size(), end.size(), end) == 0;
        };
        CHECK(ends_with("_workspace") || ends_with("_prepare") || entries.count(name) == 1, "operation_table.h has no entry for fcm_%s", name.c_str());
    }
    for (const std::string &name : entries) CHECK(listed.count(name) == 1, "functions.h does not list fcm_%s", name.c_str());
}

// ---- Results --------------------------------------------------------------------------------------------------

namespace {

// Sizes around the vector width and the piece of 16384, with remainders; more clients than threads.
// Shifts and gaps are rotated instead of multiplying the number of cases.
void matches_its_reference(const Operation &operation) {
    double worst = 0.0;
    for (const int32_t isa : isas()) {
        Device device(2, isa);
        size_t number = 0;
        for (const int64_t n : {1, 7, 63, 64, 65, 1000, 16384, 16385, 40000}) {
            if (kSanitized && (n == 16384 || n == 40000)) continue;  // 16385 has two pieces, too
            for (const int64_t clients : {1, 2, 5, 17}) {
                for (const int64_t gap : {0, 3}) {
                    ++number;
                    const Size size{clients, n};
                    for (const Parameters &settings : some_settings(operation, size, number)) {
                        const auto before = data_of(operation, device, size, settings, number);
                        if (clients > 1 && !strided(before.operands())) continue;
                        const std::string where = words(operation, size, settings) + ", isa " + std::to_string(isa) +
                                                  ", shift " + std::to_string(number % 4) + ", gap " + std::to_string(gap);
                        Placed placed(before, static_cast<int64_t>(number % 4), gap);
                        fcm_error error{};
                        CHECK(placed.run(operation, device, settings, &error) == FCM_OK, "%s: %s", where.c_str(), error.message);
                        const auto after = placed.values();
                        table::Results results(where, settings, before, after);
                        for (int64_t k = 0; k < clients; ++k) operation.reference(results, k);
                        worst = std::max(worst, results.share());
                        CHECK(placed.untouched(true), "%s: an input was written", where.c_str());
                        CHECK(placed.guards_intact(), "%s: something was written around an operand", where.c_str());
                        if (operation.output < 0) continue;
                        // The output may be the input.
                        placed.load(before);
                        Placement p = placed.placement();
                        const auto from = static_cast<size_t>(operation.same_as);
                        const auto to = static_cast<size_t>(operation.output);
                        p.at[to] = p.at[from];
                        p.stride[to] = p.stride[from];
                        CHECK(call(operation, device, size, settings, before.operands(), p, &error) == FCM_OK, "%s: %s",
                              where.c_str(), error.message);
                        CHECK(placed.values().bytes(from) == after.bytes(to), "%s: another result in place", where.c_str());
                        CHECK(placed.guards_intact(), "%s: something was written around an operand", where.c_str());
                    }
                }
            }
        }
    }
    std::printf("%s: worst error %.0f%% of its bound\n", operation.name, 100.0 * worst);
}

const bool kAdded = table::add_tests(matches_its_reference);

}  // namespace

// Results are bit-identical for any number of threads, and for every instruction set for which the header guarantees it.
// Seven pieces with an incomplete last one, under a sanitizer three; and one client, whose pieces are distributed over the
// threads.
TEST(every_operation_gives_the_same_bits) {
    constexpr int64_t kLength = kSanitized ? 36007 : 100003;
    for (const Size &size : {Size{5, kLength}, Size{1, kLength}}) {
        for (const Operation &operation : operations()) {
            const auto all = operation.settings(size);
            for (size_t i = 0; i < std::min<size_t>(2, all.size()); ++i) {
                Device most(4);  // needs the largest workspace
                auto data = data_of(operation, most, size, all[i], 1);
                // very different magnitudes, so that a sum in another order is detected
                if (data.operands()[0].use == Use::kRead && data.operands()[0].element == 4) {
                    for (size_t j = 0; j < data.bytes(0).size() / 4; j += 97) {
                        if (std::fabs(data.floats(0, 0)[j]) < 1e30f) data.floats(0, 0)[j] *= 1e4f;
                    }
                }
                Placed placed(data);
                std::map<bool, table::Data> expected;  // by whether the instruction set has fused multiply-add
                for (const int32_t isa : isas()) {
                    for (const int32_t threads : {1, 2, 4}) {
                        Device device(threads, isa);
                        placed.load(data);
                        fcm_error error{};
                        CHECK(placed.run(operation, device, all[i], &error) == FCM_OK, "%s", error.message);
                        const auto now = placed.values();
                        const bool fused = operation.bits == table::Bits::kFused && isa != FCM_ISA_BASELINE;
                        const auto &first = expected.emplace(fused, now).first->second;
                        for (size_t o = 0; o < data.operands().size(); ++o) {
                            if (data.operands()[o].use == Use::kRoom) continue;
                            CHECK(now.bytes(o) == first.bytes(o), "%s: %s differs with isa %d and %d threads",
                                  words(operation, size, all[i]).c_str(), data.operands()[o].name, isa, threads);
                        }
                    }
                }
            }
        }
    }
}

// Stride 0 must be bit-identical to the same values copied for every client.
TEST(stride_zero_is_a_broadcast) {
    Device device;
    const Size size{3, 20000};
    for (const Operation &operation : operations()) {
        const Parameters settings = operation.settings(size)[0];
        auto data = data_of(operation, device, size, settings, 19);
        for (size_t i = 0; i < data.operands().size(); ++i) {
            const Operand &operand = data.operands()[i];
            if (!operand.strided || operand.use != Use::kRead) continue;
            for (int64_t k = 1; k < size.clients; ++k) {
                std::copy(data.floats(i, 0), data.floats(i, 0) + operand.length, data.floats(i, k));
            }
            Placed copied(data);
            CHECK(copied.run(operation, device, settings) == FCM_OK, "%s", operation.name);
            Placed once(data);
            const auto shared = Floats::shared(operand.length, 1);
            shared->set(std::vector<float>(data.floats(i, 0), data.floats(i, 0) + operand.length));
            Placement p = once.placement();
            p.at[i] = shared->data();
            p.stride[i] = 0;
            fcm_error error{};
            CHECK(call(operation, device, size, settings, data.operands(), p, &error) == FCM_OK, "%s: %s", operation.name,
                  error.message);
            CHECK(shared->guards_intact(), "%s: something was written around %s", operation.name, operand.name);
            const auto wanted = copied.values();
            const auto got = once.values();
            bool anything = false;
            for (size_t o = 0; o < data.operands().size(); ++o) {
                if (data.operands()[o].use == Use::kRead || data.operands()[o].use == Use::kRoom) continue;
                CHECK(got.bytes(o) == wanted.bytes(o), "%s with one %s for all: another %s", operation.name, operand.name,
                      data.operands()[o].name);
                anything = anything || got.bytes(o) != data.bytes(o);
            }
            CHECK(anything || !operation.answers(data.operands()), "%s did nothing", operation.name);
        }
    }
}

// "An empty batch is valid and does nothing", with null for every pointer to an empty operand.
TEST(empty_batches_do_nothing) {
    Device device;
    const Size full{3, 4};
    for (const Size &size : {Size{0, 0}, Size{0, 4}, Size{3, 0}}) {
        for (const Operation &operation : operations()) {
            const auto all = operation.settings(size);
            const Parameters good = operation.settings(full)[0];
            const auto data = data_of(operation, device, full, good, 3);
            if (size.n > 0 && !strided(data.operands())) continue;
            for (const Parameters &settings : all) {
                Placed placed(data);
                const Placement given = placed.placement();
                Placement p;
                p.room_bytes = given.room_bytes;
                for (size_t i = 0; i < data.operands().size(); ++i) {
                    const Use use = data.operands()[i].use;
                    if (use == Use::kRoom || use == Use::kAnswer) p.at[i] = given.at[i];
                    p.stride[i] = size.n;
                    // one of two outputs must be given, even if it is empty
                    if (use == Use::kWritten && data.operands()[i].optional) p.at[i] = given.at[i];
                }
                fcm_error error{};
                for (const Placement &place : {p, given}) {
                    CHECK(call(operation, device, size, settings, data.operands(), place, &error) == FCM_OK, "%s: %s",
                          words(operation, size, settings).c_str(), error.message);
                    CHECK(placed.untouched(), "%s: something was written", words(operation, size, settings).c_str());
                    const auto now = placed.values();
                    for (size_t i = 0; i < data.operands().size(); ++i) {
                        if (data.operands()[i].use == Use::kRoom) {
                            CHECK(now.bytes(i) == data.bytes(i), "%s: the workspace was written", operation.name);
                        } else if (data.operands()[i].use == Use::kAnswer) {
                            int64_t place_found[2];
                            std::memcpy(place_found, now.bytes(i).data(), sizeof place_found);
                            CHECK(place_found[0] == -1 && place_found[1] == -1, "%s found something", operation.name);
                        }
                    }
                }
            }
        }
        int64_t bytes = 7;
        CHECK(fcm_sum_workspace(device, size.clients, size.n, &bytes, nullptr) == FCM_OK && bytes == 0, "%ld bytes", long(bytes));
    }
}

// ---- What is not finite ---------------------------------------------------------------------------------------

namespace {

const float kBad[] = {kNaN, kInf, -kInf, -kNaN};

}  // namespace

// Several are placed; the first in client order is reported, even if a thread finds a later one earlier. Nothing is written,
// and a repeated call is refused again.
TEST(what_is_not_finite_is_told_with_its_place) {
    struct Spot {
        int64_t client;
        int64_t index;
    };
    const int64_t n = interpreted() ? 4100 : 40000;
    const int64_t middle = interpreted() ? 4096 : 16384;
    const std::vector<std::vector<Spot>> plantings = {
        {{0, 0}}, {{0, 7}}, {{1, n - 1}, {2, 0}}, {{3, middle}, {3, middle + 1}}, {{2, n / 2}, {2, n - 1}, {3, 1}}};
    const Size size{4, n};
    for (const Operation &operation : operations()) {
        if (operation.finite < 0) continue;
        const auto operand = static_cast<size_t>(operation.finite);
        const auto all = operation.settings(size);
        for (size_t s = 0; s < all.size(); s += all.size() > 3 ? 2 : 1) {
            for (const int32_t threads : {1, 2, 8}) {
                if (kOnDevice && threads > 1) continue;
                Device device(threads);
                const auto good = data_of(operation, device, size, all[s], s);
                const bool floats = good.operands()[operand].element == 4;
                for (size_t p = 0; p < plantings.size(); ++p) {
                    auto data = good;
                    for (const Spot &spot : plantings[p]) {
                        if (floats) {
                            data.floats(operand, spot.client)[spot.index] = kBad[(p + size_t(spot.index)) % 4];
                        } else {
                            data.doubles(operand)[spot.client] = double{kBad[p % 4]};
                        }
                    }
                    Placed placed(data, 1, 1);
                    for (const bool in_place : {false, true}) {
                        if (in_place && operation.output < 0) continue;
                        Placement at = placed.placement();
                        if (in_place) {
                            at.at[operation.output] = at.at[operation.same_as];
                            at.stride[operation.output] = at.stride[operation.same_as];
                        }
                        const auto run = [&](fcm_error *e) {
                            return call(operation, device, size, all[s], data.operands(), at, e);
                        };
                        refused(FCM_NOT_FINITE, operation.function().c_str(), "NaN", run);
                        fcm_error error{};
                        run(&error);
                        const Spot &first = plantings[p][0];
                        table::Spot wanted{-1, floats ? first.index : -1};
                        if (operation.spot) wanted = operation.spot(size, first.index);
                        CHECK(error.client == first.client && error.block == wanted.block && error.index == wanted.index,
                              "%s, %d threads: (%ld, %ld, %ld)", operation.name, threads, long(error.client), long(error.block),
                              long(error.index));
                        CHECK(error.address != 0, "%s: no address", operation.name);
                        CHECK(placed.untouched(), "%s, %d threads: something was written", operation.name, threads);
                    }
                }
            }
        }
    }
}

// Operations that do not check for NaN do not hide it either: the element is NaN, its neighbours are not affected.
TEST(nan_is_carried_on_in_its_element) {
    const Size size{1, 40};
    for (const int32_t isa : isas()) {
        Device device(1, isa);
        for (const Operation &operation : operations()) {
            if (!operation.carries) continue;
            for (const Parameters &settings : operation.settings(size)) {
                auto data = data_of(operation, device, size, settings, 1);
                data.floats(0, 0)[17] = kNaN;
                Placed placed(data);
                CHECK(placed.run(operation, device, settings) == FCM_OK, "%s", operation.name);
                const auto now = placed.values();
                for (size_t i = 0; i < data.operands().size(); ++i) {
                    if (data.operands()[i].use != Use::kWritten) continue;
                    for (int64_t j = 0; j < size.n; ++j) {
                        CHECK(std::isnan(now.floats(i, 0)[j]) == (j == 17), "%s, isa %d: element %ld of %s is %g",
                              words(operation, size, settings).c_str(), isa, long(j), data.operands()[i].name,
                              double{now.floats(i, 0)[j]});
                    }
                }
            }
        }
    }
}

// ---- Refusals -------------------------------------------------------------------------------------------------

TEST(bad_parameters_are_refused) {
    Device device;
    const Size size{2, 8};
    for (const Operation &operation : operations()) {
        const Parameters good = operation.settings(size)[0];
        Placed placed(data_of(operation, device, size, good, 1));
        const auto bad = operation.bad(size);
        CHECK(bad.size() == good.size(), "%s: %zu parameters, bad values of %zu", operation.name, good.size(), bad.size());
        for (size_t i = 0; i < bad.size(); ++i) {
            for (const long double value : bad[i]) {
                Parameters settings = good;
                settings[i] = value;
                refused(FCM_INVALID_ARGUMENT, operation.function().c_str(), words(operation, size, settings).c_str(),
                        [&](fcm_error *e) { return placed.run(operation, device, settings, e); });
                CHECK(placed.untouched(), "%s: something was written", words(operation, size, settings).c_str());
            }
        }
        CHECK(placed.run(operation, device, good) == FCM_OK, "%s: the call that the refusals vary", operation.name);
    }
}

TEST(a_workspace_one_byte_too_small_is_refused) {
    Device device(2);
    const Size size{2, 20000};
    for (const Operation &operation : operations()) {
        const Parameters settings = operation.settings(size)[0];
        const auto data = data_of(operation, device, size, settings, 1);
        Placed placed(data);
        Placement p = placed.placement();
        const int64_t bytes = p.room_bytes;
        if (bytes == 0) continue;
        for (const int64_t given : {bytes - 1, int64_t{0}, int64_t{-1}, INT64_MIN}) {
            p.room_bytes = given;
            refused(FCM_INVALID_ARGUMENT, operation.function().c_str(), "workspace", [&](fcm_error *e) {
                return call(operation, device, size, settings, data.operands(), p, e);
            });
            CHECK(placed.untouched(), "%s: something was written", operation.name);
        }
        CHECK(placed.run(operation, device, settings) == FCM_OK, "%s: exactly enough", operation.name);
    }
}

namespace {

constexpr Size kSmall{3, 8};

// Memory filled with numbers in (0, 1) that are valid both as floats and, two together, as doubles, so that operands may
// have any address in it. Initially operands are packed and far apart, and norms and weights hold the values that the
// operation is tested with.
class Arena {
   public:
    explicit Arena(const table::Data &data) : data_(data), bytes_(1 << 17) {
        Random random(1);
        for (size_t i = 0; i < bytes_.size(); i += sizeof(float)) {
            const auto value = static_cast<float>(0.6 + 0.3 * random.uniform());
            std::memcpy(bytes_.data() + i, &value, sizeof value);
        }
        // vectors of char guarantee no alignment
        base_ = bytes_.data() + (-reinterpret_cast<uintptr_t>(bytes_.data()) & 63);
        for (size_t i = 0; i < data.operands().size(); ++i) {
            const bool norms = data.operands()[i].use == Use::kRead && data.operands()[i].element == 8;
            if (norms) std::memcpy(at(i), data.bytes(i).data(), data.bytes(i).size());
        }
        before_.assign(bytes_.begin(), bytes_.end());
    }

    char *at(size_t i) { return base_ + static_cast<int64_t>(i + 1) * 16384; }
    char *between() { return base_ + 8192; }
    Placement packed() {
        Placement p;
        for (size_t i = 0; i < data_.operands().size(); ++i) {
            p.at[i] = at(i);
            p.stride[i] = data_.operands()[i].length;
            if (data_.operands()[i].use == Use::kRoom) p.room_bytes = data_.operands()[i].length * 8;
            if (data_.operands()[i].use == Use::kAnswer) p.at[i] = answer_.data();
        }
        return p;
    }
    bool untouched() const { return std::equal(bytes_.begin(), bytes_.end(), before_.begin(), before_.end()); }
    void restore() { std::copy(before_.begin(), before_.end(), bytes_.begin()); }

   private:
    const table::Data &data_;
    Vector<char> bytes_;
    std::vector<char> before_;
    std::array<double, 2> answer_{};
    char *base_ = nullptr;
};

// Calls body(operation, run(placement, error), arena, operands) for every operation of the table.
template <class Body>
void for_small_operations(Body &&body) {
    Device device(2);
    for (const Operation &operation : operations()) {
        const Parameters settings = operation.settings(kSmall)[0];
        const auto data = data_of(operation, device, kSmall, settings, 1);
        Arena arena(data);
        const auto run = [&](const Placement &p, fcm_error *e, bool ready = true) {
            return call(operation, device, kSmall, settings, data.operands(), p, e, ready);
        };
        body(operation, run, arena, data.operands());
    }
}

char *moved(void *from, int64_t bytes) { return static_cast<char *>(from) + bytes; }

// Whether a wrong address of an operand can be detected: empty operands and addresses for results may have any address.
bool matters(const Operand &operand) { return operand.use != Use::kAnswer && operand.length > 0; }

std::vector<char> written(const std::vector<Operand> &operands, const Placement &p) {
    std::vector<char> all;
    for (size_t i = 0; i < operands.size(); ++i) {
        if (operands[i].use != Use::kWritten) continue;
        for (int64_t k = 0; k < operands[i].clients(kSmall); ++k) {
            const char *piece = moved(p.at[i], k * p.stride[i] * operands[i].element);
            all.insert(all.end(), piece, piece + operands[i].length * operands[i].element);
        }
    }
    return all;
}

}  // namespace

// Every written operand against every other one: the same address, and an overlap of one element at either end. Inputs may
// share memory, and operands may be adjacent.
TEST(overlapping_operands_are_refused) {
    for_small_operations([](const Operation &operation, auto run, Arena &arena, const std::vector<Operand> &operands) {
        const Placement packed = arena.packed();
        fcm_error error{};
        CHECK(run(packed, &error) == FCM_OK, "%s: %s", operation.name, error.message);
        CHECK(!arena.untouched() || operation.name == std::string("all_finite") || !operation.answers(operands), "%s did nothing", operation.name);
        arena.restore();
        for (size_t i = 0; i < operands.size(); ++i) {
            for (size_t j = 0; j < operands.size(); ++j) {
                if (i == j || !matters(operands[i]) || !matters(operands[j])) continue;
                const int64_t element = std::max(operands[i].element, operands[j].element);
                const int64_t ahead = operands[i].bytes(kSmall);
                const int64_t behind = operands[j].bytes(kSmall);
                const struct {
                    const char *what;
                    int64_t at;
                    bool overlaps;
                } placings[] = {
                    {"at the same place", 0, true},
                    {"on the last element", ahead - element, true},
                    {"on the first element", element - behind, true},
                    {"right behind", ahead, false},
                    {"right before", -behind, false},
                };
                for (const auto &placing : placings) {
                    Placement p = packed;
                    p.at[j] = moved(packed.at[i], placing.at);
                    char what[96];
                    std::snprintf(what, sizeof what, "%s %s of %s", operands[j].name, placing.what, operands[i].name);
                    const bool in_place = placing.at == 0 && operation.output >= 0 &&
                                          std::min(i, j) == size_t(operation.same_as) && std::max(i, j) == size_t(operation.output);
                    const bool elsewhere = kOnDevice && operands[i].host != operands[j].host;
                    if (placing.overlaps && (operands[i].written() || operands[j].written()) && !in_place && !elsewhere) {
                        refused(FCM_INVALID_ARGUMENT, operation.function().c_str(), what,
                                [&](fcm_error *e) { return run(p, e, false); });
                        CHECK(arena.untouched(), "%s, %s: something was written", operation.name, what);
                    } else {
                        CHECK(run(p, &error) == FCM_OK, "%s, %s: %s", operation.name, what, error.message);
                    }
                    arena.restore();
                }
            }
        }
    });
}

// The operands of a client side by side, then those of the next client: the hulls overlap, the pieces do not. With a period
// that is one element too short, the last operand of a client overlaps the first one of the next.
TEST(interleaved_operands_are_told_apart) {
    for_small_operations([](const Operation &operation, auto run, Arena &arena, const std::vector<Operand> &operands) {
        const Placement packed = arena.packed();
        std::vector<size_t> batches;
        for (size_t i = 0; i < operands.size(); ++i) {
            if (operands[i].strided) batches.push_back(i);
        }
        if (batches.size() < 2) return;
        CHECK(run(packed, nullptr) == FCM_OK, "%s", operation.name);
        const auto expected = written(operands, packed);
        arena.restore();
        for (size_t turn = 0; turn < batches.size(); ++turn) {
            std::rotate(batches.begin(), batches.begin() + 1, batches.end());
            int64_t period = 0;
            Placement p = packed;
            for (const size_t i : batches) {
                p.at[i] = arena.between() + period * 4;
                period += operands[i].length;
            }
            for (const size_t i : batches) {
                p.stride[i] = period;
                for (int64_t k = 0; k < kSmall.clients; ++k) {
                    std::memcpy(moved(p.at[i], k * period * 4), moved(packed.at[i], k * packed.stride[i] * 4),
                                size_t(operands[i].length) * 4);
                }
            }
            fcm_error error{};
            CHECK(run(p, &error) == FCM_OK, "%s, turn %zu: %s", operation.name, turn, error.message);
            CHECK(written(operands, p) == expected, "%s, turn %zu: another result", operation.name, turn);
            arena.restore();

            for (const size_t i : batches) p.stride[i] = period - 1;
            if (operands[batches.front()].written() || operands[batches.back()].written()) {
                refused(FCM_INVALID_ARGUMENT, operation.function().c_str(), "a period one too short",
                        [&](fcm_error *e) { return run(p, e, false); });
                CHECK(arena.untouched(), "%s: something was written", operation.name);
            }
            arena.restore();
        }
    });
}

// Every pointer of every operation in turn: null, misaligned for its type, and with invalid strides.
TEST(null_and_misaligned_operands_are_refused) {
    for_small_operations([](const Operation &operation, auto run, Arena &arena, const std::vector<Operand> &operands) {
        const std::string function = operation.function();
        const Placement packed = arena.packed();
        refused(FCM_INVALID_ARGUMENT, function.c_str(), "null context", [&](fcm_error *e) {
            return call(operation, nullptr, kSmall, operation.settings(kSmall)[0], operands, packed, e, false);
        });
        for (size_t i = 0; i < operands.size(); ++i) {
            const Operand &operand = operands[i];
            Placement p = packed;
            const auto refuse = [&] {
                refused(FCM_INVALID_ARGUMENT, function.c_str(), operand.name, [&](fcm_error *e) { return run(p, e, false); });
            };
            p.at[i] = nullptr;
            if (!operand.optional && operand.length > 0) refuse();
            if (!matters(operand)) continue;
            p.at[i] = moved(packed.at[i], operand.element / 2);
            if (operand.element > 1) refuse();
            if (operand.strided) {
                p = packed;
                for (const int64_t stride : {operand.length - 1, int64_t{1}, int64_t{-1}, -operand.length, INT64_MIN}) {
                    if (operand.length == 1 && stride >= 0) continue;
                    p.stride[i] = stride;
                    refuse();
                }
                p.stride[i] = 0;
                if (operand.written()) refuse();
            }
            CHECK(arena.untouched(), "%s, %s: something was written", operation.name, operand.name);
        }
    });
}

// Operands are a few floats: if a size were accepted instead of refused, the operation would run past their end.
TEST(sizes_beyond_the_address_space_are_refused) {
    Device device(2);
    struct Wrong {
        int64_t clients;
        int64_t n;
        int64_t stride;
    };
    constexpr int64_t k32 = int64_t{1} << 32;
    constexpr int64_t k61 = int64_t{1} << 61;
    constexpr int64_t k62 = int64_t{1} << 62;
    const Wrong sizes[] = {
        {3, k62, k62},                          // 3 n overflows
        {3, 4, k61},                            // 2 strides of bytes overflow
        {2, INT64_MAX, INT64_MAX},
        {1, INT64_MAX, INT64_MAX},
        {1, k62, k62},                          // n fits, its bytes do not
        {1, k61, k61},                          // its bytes are 2^63, one too many
        {1, -1, 1},
        {INT64_MAX, 1, 1},
        {INT64_MAX, INT64_MAX, INT64_MAX},
        {k32, 1, k32 / 2},                      // as int32 there are no clients
        {2, k32 + 1, 1},                        // as int32 there is one element, and the stride suffices
        {2, k32 + 1, k32},
        {2, 4, k32 + 4 - k32 * 2},              // as int32 the stride is 4
        {-1, 4, 4},
        {2, -1, 4},
        {INT64_MIN, 4, 4},
        {2, INT64_MIN, 4},
    };
    for (const Operation &operation : operations()) {
        const Parameters small = operation.settings(kSmall)[0];
        const auto operands = operation.operands(device, kSmall, small);
        const auto longer = operation.operands(device, {1, 1 << 20}, small);
        // Matrices of a table are shorter than n; their own tests cover sizes that are too large.
        const bool capped = std::all_of(longer.begin(), longer.end(), [](const Operand &o) { return o.length < 1 << 19; });
        if (capped) continue;
        alignas(64) double memory[table::kMostOperands][16] = {};
        Placement p;
        p.room_bytes = INT64_MAX;
        for (size_t i = 0; i < operands.size(); ++i) p.at[i] = memory[i];
        for (const auto &[clients, n, stride] : sizes) {
            const Size size{clients, n};
            if (!strided(operands) && n > 0 && n < k61) continue;
            for (const Parameters &settings : operation.settings(size)) {
                for (size_t i = 0; i < operands.size(); ++i) p.stride[i] = longer[i].length == operands[i].length ? 0 : stride;
                refused(FCM_INVALID_ARGUMENT, operation.function().c_str(), words(operation, size, settings).c_str(),
                        [&](fcm_error *e) { return call(operation, device, size, settings, operands, p, e, false); });
            }
        }
        for (const auto &operand : memory) {
            for (const double value : operand) CHECK(value == 0.0, "%s has written", operation.name);
        }
    }
}
