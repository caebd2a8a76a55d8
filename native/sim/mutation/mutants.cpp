#include "mutants.h"

#include <utility>

namespace mutation {
namespace {

// The tests for a part of the library.
const std::vector<std::string> kSums = {"norm_is_summed_in_its_order", "storm"};
const std::vector<std::string> kDirections = {"directions_and_inverse_roots_as_on_the_cpu"};
const std::vector<std::string> kTopK = {"top_k_of_ties", "top_k_of_different_magnitudes"};
const std::vector<std::string> kSmallSchulz = {"newton_schulz_of_mixed_shapes", "newton_schulz_of_a_tall_matrix"};
const std::vector<std::string> kLongSchulz = {"newton_schulz_of_long_sides"};
const std::vector<std::string> kSides = {"newton_schulz_of_sides_around_each_tiling"};

// The GPU with the least shared memory, where matrices are streamed.
constexpr int kSmallShared = 75;

std::vector<Mutant> make() {
    std::vector<Mutant> all;
    const auto add = [&all](Mutant mutant) { all.push_back(std::move(mutant)); };

    // ---- The sum of a block ----
    const Edit no_barrier_before_use = {"device.h",
                                        R"(partial[warp] = value;
    __syncthreads();)",
                                        "partial[warp] = value;"};
    const Edit no_barrier_after_use = {"device.h",
                                       R"(    __syncthreads();
    return total;)",
                                       "    return total;"};
    add({"sum-barrier-before", "block sum: no barrier before the warps' sums are read", {no_barrier_before_use}, "sums.cu",
         Engine::kSource, kSums});
    add({"sum-barrier-before-race", "the same, as a race", {no_barrier_before_use}, "sums.cu", Engine::kPtx, kSums});
    add({"sum-barrier-after", "block sum: no barrier before the place is used again", {no_barrier_after_use}, "sums.cu",
         Engine::kSource, kSums, true});
    add({"sum-barrier-after-race", "the same, as a race", {no_barrier_after_use}, "sums.cu", Engine::kPtx, kSums, true});
    add({"sum-unordered",
         "block sum: warps add to one place, in no order and at once",
         {{"device.h", "if (threadIdx.x % 32 == 0) partial[warp] = value;",
           "if (threadIdx.x < kWarps) partial[threadIdx.x] = 0.0;\n    __syncthreads();\n"
           "    if (threadIdx.x % 32 == 0) partial[warp * 0] += value;"}},
         "sums.cu",
         Engine::kPtx,
         kSums});
    add({"shuffle-mask", "block sum: the shuffle's mask is half a warp", {{"device.h", "__shfl_down_sync(kWholeWarp,", "__shfl_down_sync(0x0000ffffu,"}},
         "sums.cu", Engine::kSource, kSums});
    add({"shuffle-mask-ptx", "the same, in the PTX", {{"device.h", "__shfl_down_sync(kWholeWarp,", "__shfl_down_sync(0x0000ffffu,"}},
         "sums.cu", Engine::kPtx, kSums});
    add({"shuffle-distance", "block sum: the tree begins at half its width", {{"device.h", "int distance = 16;", "int distance = 8;"}},
         "sums.cu", Engine::kSource, kSums});
    add({"sum-piece-tail", "sums: the last element of a client is left out",
         {{"sums.h",
           R"(j < first + 4 && j < n; ++j) {
                float value[1];)",
           R"(j < first + 4 && j < n - 1; ++j) {
                float value[1];)"}},
         "sums.cu", Engine::kSource, kSums});
    add({"divergent-barrier", "block sum: only warps with a sum reach the barrier",
         {{"device.h",
           R"(partial[warp] = value;
    __syncthreads();)",
           "partial[warp] = value;\n    if (value != 0.0) __syncthreads();"}},
         "sums.cu", Engine::kSource, kSums});

    // ---- Means ----
    const std::vector<std::string> kAverages = {"average", "average_of_many_clients"};
    const std::vector<std::string> kRows = {"average_of_rows_anywhere"};
    const std::vector<std::string> kSteps = {"mean_exponents", "mean_sums", "exponents_and_sums_at_any_alignment"};
    const std::vector<std::string> kUnits = {"terms_of_weight_one_are_rounded_like_products"};
    const std::vector<std::string> kParts = {"parts_of_a_mean_anywhere"};
    const std::vector<std::string> kPeers = {"rows_of_several_devices_are_read_where_they_are"};
    add({"rows-listed", "mean of rows: the table of the launch is used for any number of rows",
         {{"means.cu",
           R"(if (count <= Few) {
        std::copy(addresses, addresses + count, to.few);)",
           R"(if (count >= 0) {
        std::copy(addresses, addresses + std::min(count, Few), to.few);)"}},
         "means.cu", Engine::kSource, kRows});
    add({"rows-one-target", "mean of rows: the last target is left out",
         {{"means.cu", "i < target_count; ++i", "i < target_count - 1; ++i"}}, "means.cu", Engine::kSource, kRows});
    const Edit weight_read = {"means.h", "return Uniform || weight != 0.0;", "return Uniform || weight >= 0.0;"};
    add({"rows-weight", "mean of rows: a row of weight 0 is read", {weight_read}, "means.cu", Engine::kPtx, kRows});
    add({"mean-weight", "steps of a mean: a row of weight 0 is read", {weight_read}, "means.cu", Engine::kSource, kSteps});
    add({"rows-scratch", "mean of rows: the tables overlap in memory of the device",
         {{"means.cu", "used_ += bytes;", "used_ += bytes - 8;"}}, "means.cu", Engine::kSource, kRows});
    add({"rows-no-access", "mean of rows: the device is not given access to the others' pools",
         {{"context.cu", "check(cudaMemPoolSetAccess(pool, &access, 1), \"cudaMemPoolSetAccess\");", ""}}, "context.cu",
         Engine::kSource, kPeers});
    add({"mean-exponent-high", "exponents: one too many",
         {{"means.cu", "static_cast<int>(largest[i] >> kExponentShift);", "static_cast<int>(largest[i] >> kExponentShift) + 1;"}},
         "means.cu", Engine::kSource, kSteps});
    add({"mean-exponent-rounded", "exponents: of a weighted value, the exponent of the value",
         {{"means.h", "Uniform ? x : static_cast<float>(weight * static_cast<double>(x))", "x"}}, "means.cu", Engine::kSource,
         kSteps});
    add({"mean-last-client", "mean: the exponent of the last client is left out",
         {{"means.h", "if (k < clients) raise(", "if (k < clients - 1) raise("}}, "means.cu", Engine::kSource, kAverages});
    add({"mean-late-clients", "mean: clients beyond those in registers have no part in the exponents",
         {{"means.h",
           R"(load<W>(row(k) + j, x);
        raise(term, x);)",
           "load<W>(row(k) + j, x);"}},
         "means.cu", Engine::kSource, kAverages});
    add({"mean-first-clients", "mean: clients in registers are added again",
         {{"means.h",
           R"(        add(Term<Uniform>::of(weights, k), held[k]);
    }
    for (int64_t k = kHeld;)",
           R"(        add(Term<Uniform>::of(weights, k), held[k]);
    }
    for (int64_t k = 0;)"}},
         "means.cu", Engine::kSource, kAverages});
    add({"mean-unit", "mean: a unit of the sum is half of what it is at the end",
         {{"means.h", "places_(bits - 24 - exponent)", "places_(bits - 23 - exponent)"}}, "means.cu", Engine::kSource,
         kAverages});
    add({"mean-down", "sums: integers are rounded down",
         {{"means.h", "(2 * digits + (1u << lost) - 1u + (digits >> lost & 1u))", "(2 * digits)"}}, "means.cu", Engine::kSource,
         kUnits});
    add({"mean-half-up", "sums: half a unit is rounded up", {{"means.h", " - 1u + (digits >> lost & 1u))", ")"}}, "means.cu",
         Engine::kSource, kUnits});
    add({"mean-half-up-ptx", "the same, in the PTX", {{"means.h", " - 1u + (digits >> lost & 1u))", ")"}}, "means.cu",
         Engine::kPtx, kUnits});
    add({"mean-truncated", "sums: products are cut off instead of rounded",
         {{"means.h", "__double2ll_rn(term.weight * static_cast<double>(x) * scale_)",
           "static_cast<long long>(term.weight * static_cast<double>(x) * scale_)"}},
         "means.cu", Engine::kSource, {"mean_sums"}});
    add({"mean-subnormal", "sums: a subnormal number has the exponent of its field",
         {{"means.h", "places_ + max(field, 1)", "places_ + field"}}, "means.cu", Engine::kSource, kUnits});
    add({"mean-sum-32", "mean: added in 32 bits",
         {{"means.h", "unsigned long long sum[W] = {};", "unsigned sum[W] = {};"}}, "means.cu", Engine::kSource, kAverages});
    add({"mean-sum-double", "sums: added in double",
         {{"means.cu", "sum[i] += Units<Uniform>(terms.bits, exponent[i]).of(term, x[i]);",
           "const auto one = static_cast<long long>(Units<Uniform>(terms.bits, exponent[i]).of(term, x[i])); "
           "const double both = static_cast<double>(static_cast<long long>(sum[i])) + static_cast<double>(one); "
           "sum[i] = static_cast<unsigned long long>(static_cast<long long>(both));"}},
         "means.cu", Engine::kSource, {"mean_sums"}});
    add({"mean-terms", "sums: rounded for the clients of this device instead of all terms",
         {{"means.cu", "MeanTerms{clients, term_bits(terms), x, x_stride}", "MeanTerms{clients, term_bits(clients), x, x_stride}"}},
         "means.cu", Engine::kSource, {"mean_sums"}});
    add({"mean-tail", "sums: the last element is left out",
         {{"device.h", "for (int64_t j = first; j < n; ++j)", "for (int64_t j = first; j < n - 1; ++j)"}}, "means.cu",
         Engine::kSource, kSteps});
    add({"mean-sum-aligned", "sums: pairs are stored where they are not aligned",
         {{"means.cu",
           R"( &&
                             is_aligned(sums, kSumPairBytes);)",
           ";"}},
         "means.cu", Engine::kPtx, kSteps, false, 89, true});
    add({"mean-bad-sum", "sums: that of an element that is not finite is kept",
         {{"means.cu", "if (exponent[i] == kNotFiniteExponent) sum[i] = 0;", ""}}, "means.cu", Engine::kSource, kSteps});
    add({"mean-parts", "combine: the last part is left out",
         {{"means.cu", "for (int64_t p = 1; p < parts; ++p) {", "for (int64_t p = 1; p < parts - 1; ++p) {"}}, "means.cu",
         Engine::kSource, kParts});
    add({"mean-parts-end", "finish: the first part is left out",
         {{"means.cu", "for (int64_t p = 0; p < parts; ++p) add_sums", "for (int64_t p = 1; p < parts; ++p) add_sums"}},
         "means.cu", Engine::kSource, kParts});
    add({"mean-unsigned", "finish: the sum is taken as a number without sign",
         {{"means.h", "static_cast<double>(static_cast<long long>(sum))", "static_cast<double>(sum)"}}, "means.cu",
         Engine::kPtx, kParts});
    add({"mean-nan", "finish: NaN is not propagated",
         {{"means.h", "if (exponent == kNotFiniteExponent) return __uint_as_float(0x7fc00000u);", ""}}, "means.cu",
         Engine::kSource, kParts});
    for (const auto &[name, kernel] :
         {std::pair{"average-goes-on", "for_elements(1, n, vectors != 0, fcm::AverageRows"},
          std::pair{"combine-goes-on", "for_elements(1, n, vectors != 0, fcm::MeanCombine"},
          std::pair{"finish-goes-on", "for_elements<fcm::kSumVector>(1, n, vectors != 0,\n"
                                      "                                       fcm::MeanFinish"}}) {
        const std::string call = std::string("    fcm::") + kernel;
        add({name, "a mean goes ahead after a fault", {{"means.cu", "    if (fcm::stopped(status)) return;\n" + call, call}},
             "means.cu", Engine::kSource, {"means_after_a_fault_write_nothing"}});
    }

    // ---- Element by element ----
    add({"tail-short", "the last element of a client is left out",
         {{"device.h", "for (int64_t j = first; j < n; ++j)", "for (int64_t j = first; j < n - 1; ++j)"}}, "elementwise.cu",
         Engine::kSource, {"ema"}});
    add({"tail-long", "a vector may reach one element past the end",
         {{"device.h",
           R"(if (first + V <= n) {
                op)",
           R"(if (first + V - 1 <= n) {
                op)"}},
         "elementwise.cu", Engine::kSource, {"ema"}});
    add({"no-grid-stride", "a block does one task, however many there are",
         {{"device.h",
           R"(task += gridDim.x) {
        const int64_t client = task / chunks;)",
           R"(task += clients * chunks) {
        const int64_t client = task / chunks;)"}},
         "elementwise.cu", Engine::kSource, {"more_clients_than_blocks"}});
    add({"client-stride", "y is found with the stride of x",
         {{"elementwise.cu",
           R"(float *to = y + client * y_stride + j;
        if (keep != 0.0f) {)",
           R"(float *to = y + client * x_stride + j;
        if (keep != 0.0f) {)"}},
         "elementwise.cu", Engine::kSource, {"ema"}});
    add({"int32-offset", "the offset of a client is computed in 32 bits",
         {{"elementwise.cu", "load<W>(x + client * x_stride + j, fresh);",
           "load<W>(x + static_cast<int32_t>(client * x_stride + j), fresh);"}},
         "elementwise.cu", Engine::kSource, {"client_beyond_two_to_the_31"}});
    const Edit always_vectors = {"device.h", "return reinterpret_cast<uintptr_t>(base) % 16 == 0 && (clients == 1 || stride % 4 == 0);",
                                 "return base != nullptr && clients >= 1 && stride >= 0;"};
    add({"unaligned-vectors", "vectors are loaded where they are not aligned", {always_vectors}, "elementwise.cu",
         Engine::kPtx, {"ema", "compose_momentum"}, false, 89, true});
    add({"bad-norm-ignored", "a projection goes ahead though a norm is not finite",
         {{"elementwise.cu", "if (fcm::not_finite(norms[k])) check.found", "if (norms[k] < 0.0) check.found"}}, "elementwise.cu",
         Engine::kSource, {"project"}});
    add({"nan-unseen", "only infinities are looked for, not NaN",
         {{"device.h", "return (__float_as_uint(value) & 0x7f800000u) == 0x7f800000u;",
           "return (__float_as_uint(value) & 0x7fffffffu) == 0x7f800000u;"}},
         "finite.cu", Engine::kSource, {"first_that_is_not_finite"}});
    add({"first-found-wins", "whoever finds a NaN last says where, not the first place",
         {{"status.h", "atomicMin(&status->address,", "atomicExch(&status->address,"}},
         "finite.cu", Engine::kSource, {"first_that_is_not_finite"}});

    // ---- What follows a fault ----
    add({"fault-ignored", "an operation goes ahead though another has found NaN",
         {{"elementwise.cu", "if (!fcm::stopped(status)) fcm::for_elements(clients, n, vectors != 0, op);\n}\n\nextern \"C\" __global__ void __launch_bounds__(kThreads)\n    fcm_k_compose",
           "if (status != nullptr) fcm::for_elements(clients, n, vectors != 0, op);\n}\n\nextern \"C\" __global__ void __launch_bounds__(kThreads)\n    fcm_k_compose"}},
         "elementwise.cu", Engine::kSource, {"what_follows_a_fault_writes_nothing"}});
    add({"last-fault-named", "a later fault replaces the first one",
         {{"status.h", "if (atomicMin(&status->ticket, ticket) >= ticket) {", "if (atomicExch(&status->ticket, ticket) != 0) {"}},
         "finite.cu", Engine::kSource, {"the_first_fault_is_named"}});
    add({"fault-address-mixed", "a later fault lowers the address of the first one",
         {{"status.h", "if (atomicMin(&status->ticket, ticket) >= ticket) {", "if (atomicMin(&status->ticket, ticket) > 0) {"}},
         "finite.cu", Engine::kSource, {"the_first_fault_is_named"}});
    add({"schulz-after-fault", "Newton-Schulz goes ahead after a fault",
         {{"small_matrices.h", "<= s.bad.ticket ? matrices : 0;", "< 1 ? matrices : 0;"}}, "small_schulz.cu",
         Engine::kSource, {"what_follows_a_fault_writes_nothing"}});

    // ---- Steps of vectors ----
    add({"vector-entry", "a piece at the beginning of a vector is taken for the vector before",
         {{"sums.h", "if (entries[middle].*first <= position) {", "if (entries[middle].*first < position) {"}},
         "vector_steps.cu", Engine::kSource, {"vector_steps"}});
    add({"vector-norm-place", "the norm of a vector is read at the first piece of the client",
         {{"vector_steps.cu", "v.sums[client * v.pieces + entry.first_piece];", "v.sums[client * v.pieces];"}},
         "vector_steps.cu", Engine::kSource, {"vector_steps"}});
    add({"vector-tail", "the last element of a vector is not stepped",
         {{"vector_steps.cu", "j < first + 4 && j < entry.n; ++j", "j < first + 4 && j < entry.n - 1; ++j"}},
         "vector_steps.cu", Engine::kSource, {"vector_steps"}});
    add({"vector-norm-race", "the norm replaces the first sum before all have read it",
         {{"vector_steps.cu", "const double norm = fcm::norm_of(sums, fcm::parts_of(entry.n, fcm::kSumPiece), partial);\n        if (threadIdx.x == 0) *sums = norm;",
           "if (threadIdx.x == 0) *sums += 0.0;\n        const double norm = fcm::norm_of(sums, fcm::parts_of(entry.n, fcm::kSumPiece), partial);\n        if (threadIdx.x == 255) *sums = norm;"}},
         "vector_steps.cu", Engine::kPtx, {"vector_steps"}});
    add({"schulz-queue", "Newton-Schulz: the queue is not reset",
         {{"small_matrices.h", "            if (head.task == matrices + gridDim.x - 1) atomicExch(s.next, 0ull);\n", ""}}, "small_schulz.cu",
         Engine::kSource, {"newton_schulz_twice"}});

    // ---- Masks of dropout ----
    add({"draw-counted-from-0", "the first number of the generator is its seed, mixed",
         {{"dropout.cu", "(static_cast<uint64_t>(draw) + 1)", "static_cast<uint64_t>(draw)"}}, "dropout.cu", Engine::kSource,
         {"dropout_mask"}});
    add({"draw-parts-reversed", "single elements take the parts of a number from its other end",
         {{"dropout.cu", "below(draw, static_cast<int>(j % 4))", "below(draw, 3 - static_cast<int>(j % 4))"}}, "dropout.cu",
         Engine::kSource, {"dropout_mask"}});
    add({"words-unaligned", "words of a mask are stored where they are not aligned",
         {{"dropout.cu", "reinterpret_cast<uintptr_t>(mask) % 4 == 0 && (clients == 1 || mask_stride % 4 == 0)",
           "clients >= 1 && mask_stride >= 0"}},
         "dropout.cu", Engine::kPtx, {"dropout_mask"}, false, 89, true});
    add({"first-seeds-again", "clients beyond the first launch have the seeds of the first",
         {{"dropout.cu", "std::copy(seeds + first, seeds + first + count, carried.of)",
           "std::copy(seeds, seeds + count, carried.of)"}},
         "dropout.cu", Engine::kSource, {"dropout_masks_of_more_clients_than_a_launch_takes"}});

    // ---- Eigenvectors ----
    add({"diagonals-first", "inverse roots: the diagonal is replaced before it is read",
         {{"factors.cu", "if (fcm::stopped(status)) return;\n    for (int64_t task = blockIdx.x; task < clients * n; task += gridDim.x) {\n        const int64_t client = task / n;\n        const int64_t i = task - client * n;\n        double *own = gram",
           "if (fcm::stopped(status)) return;\n    if (threadIdx.x == 0 && blockIdx.x < n) gram[blockIdx.x * (n + 1)] *= 1.5;\n    for (int64_t task = blockIdx.x; task < clients * n; task += gridDim.x) {\n        const int64_t client = task / n;\n        const int64_t i = task - client * n;\n        double *own = gram"}},
         "factors.cu", Engine::kSource, kDirections});
    add({"rows-of-the-first-client", "directions: each client is judged by the eigenvalues of the first",
         {{"factors.cu", "const double *own = values + client * n;", "const double *own = values + 0 * client;"}}, "factors.cu",
         Engine::kSource, kDirections});
    add({"kept-by-every-row", "directions: every block writes the count, at once",
         {{"factors.cu", "if (i > 0) continue;", "if (i > n) continue;"}}, "factors.cu", Engine::kPtx, kDirections});
    add({"unconverged-unseen", "directions: nobody looks whether eigenvectors converged",
         {{"factors.cu", "if (info[k] != 0) check.found(info + k);", ""}}, "factors.cu", Engine::kSource, kDirections});

    // ---- Largest elements ----
    add({"tie-break", "among equals one too many stays",
         {{"top_k.cu", "static_cast<unsigned long long>(j + i) < search.end", "static_cast<unsigned long long>(j + i) <= search.end"}},
         "top_k.cu", Engine::kSource, kTopK});
    add({"count-not-atomic", "digits are counted without atomics",
         {{"top_k.cu", "if (value >= 0) atomicAdd(own + value, 1u);", "if (value >= 0) own[value] += 1u;"}}, "top_k.cu",
         Engine::kPtx, kTopK});
    add({"shared-overrun", "one count more is cleared than there are",
         {{"top_k.cu", "i < kDigitValues; i += kThreads) own[i] = 0;", "i <= kDigitValues; i += kThreads) own[i] = 0;"}},
         "top_k.cu", Engine::kSource, kTopK});
    add({"count-barrier", "digits are counted before all counts are cleared",
         {{"top_k.cu",
           R"(own[i] = 0;
        __syncthreads();)",
           "own[i] = 0;"}},
         "top_k.cu", Engine::kSource, kTopK});
    add({"count-barrier-after", "digits are added up before all are counted",
         {{"top_k.cu",
           R"(atomicAdd(own + value, 1u);
        }
        __syncthreads();)",
           R"(atomicAdd(own + value, 1u);
        })"}},
         "top_k.cu", Engine::kSource, kTopK});
    add({"pick-barrier", "a digit is picked before all runs are summed",
         {{"top_k.cu",
           R"(runs[threadIdx.x] = run;
    __syncthreads();)",
           "runs[threadIdx.x] = run;"}},
         "top_k.cu", Engine::kSource, kTopK});

    // ---- Matrices ----
    add({"square-barrier", "rearrange: the square is read before it is filled",
         {{"rearrange.cu",
           R"(        __syncthreads();
        for (int line = slow; line < kSquare; line += kLines) {
            const int i = write_columns)",
           R"(        for (int line = slow; line < kSquare; line += kLines) {
            const int i = write_columns)"}},
         "rearrange.cu", Engine::kSource, {"rearrange_of_each_layout"}});
    add({"square-barrier-again", "rearrange: the square is filled again while some still read it",
         {{"rearrange.cu", "        __syncthreads();  // before the square is filled again\n", ""}}, "rearrange.cu", Engine::kPtx,
         {"rearrange_of_each_layout"}, true});

    // ---- Products ----
    const std::vector<std::string> kLarge = {"newton_schulz_of_any_size_has_the_bits_of_the_cpu"};
    const std::vector<std::string> kMultiply = {"multiply_of_each_layout"};
    add({"slice-barrier", "products: a slice is used before it is there",
         {{"fma_tiles.h",
           R"(        __syncthreads();
        // What follows)",
           "        // What follows"}},
         "products.cu", Engine::kSource, kMultiply});
    add({"slice-barrier-again", "products: the next slice is fetched while some still use this one",
         {{"fma_tiles.h",
           R"(        __syncthreads();
        now = 1 - now;)",
           "        now = 1 - now;"}},
         "products.cu", Engine::kPtx, kMultiply});
    // Before sm_80 a copy is a load and a store, whose race is one of ordinary accesses.
    add({"slice-barrier-again-75", "the same, on a GPU without asynchronous copies",
         {{"fma_tiles.h",
           R"(        __syncthreads();
        now = 1 - now;)",
           "        now = 1 - now;"}},
         "products.cu", Engine::kPtx, kMultiply, false, 75});
    add({"slice-wait", "products: the copies of a slice are not waited for",
         {{"fma_tiles.h", "            wait_copies<1>();\n", ""}}, "products.cu", Engine::kPtx, kMultiply});
    add({"slice-wait-last", "products: the copies of the last slice are not waited for",
         {{"fma_tiles.h", "            wait_copies<0>();\n", "            wait_copies<1>();\n"}}, "products.cu", Engine::kPtx, kMultiply});
    add({"slice-wait-late", "products: the last copies are waited for after the barrier",
         {{"fma_tiles.h",
           R"(            wait_copies<0>();
        }
        __syncthreads();)",
           R"(        }
        __syncthreads();
        if (k + kSlice >= depth) wait_copies<0>();)"}},
         "products.cu", Engine::kPtx, kMultiply});
    add({"slice-commit", "products: the copies of a slice are in the group of the next",
         {{"fma_tiles.h",
           R"(    commit_copies();
    int now = 0;)",
           "    int now = 0;"}},
         "products.cu", Engine::kPtx, kMultiply});
    add({"slice-stale", "products: the buffers of the pair are not exchanged", {{"fma_tiles.h", "        now = 1 - now;\n", ""}},
         "products.cu", Engine::kSource, kLarge});
    add({"stage-barrier", "products: mirror images are stored before the results are there",
         {{"tiles.h",
           R"(    __syncthreads();
    // A warp takes)",
           "    // A warp takes"}},
         "products.cu", Engine::kPtx, kMultiply});
    add({"stage-barrier-again", "products: the next quarter is staged while some still store this one",
         {{"fma_tiles.h",
           R"(t.left + q * kHalfTile) || bad;
            __syncthreads();)",
           "t.left + q * kHalfTile) || bad;"}},
         "products.cu", Engine::kPtx, kMultiply});
    add({"product-mirror", "products: four columns of mirror images are stored to one",
         {{"tiles.h", "int64_t at = (left + mirrored) * t.pitch + top + i;", "int64_t at = left * t.pitch + top + i;"}},
         "products.cu", Engine::kSource, kLarge});
    add({"product-mirror-diagonal", "products: in tiles on the diagonal the mirror image is not written",
         {{"tiles.h", "if (mirrored <= i + below) continue;", "if (mirrored <= i + below || t.top == t.left) continue;"}},
         "products.cu", Engine::kSource, kMultiply});
    add({"triangle-off", "products: the triangle begins a tile too late",
         {{"tiles.h", "while (row > 0 && row * side - row * (row - 1) / 2 > t) --row;", "++t;"}}, "products.cu",
         Engine::kSource, kLarge});
    add({"half-tile", "products: the second patch of a thread is beside the first",
         {{"fma_tiles.h", "load<kPatch>(&b[d][col + q * kHalfTile], cols[q]);", "load<kPatch>(&b[d][col + q * kPatch], cols[q]);"}},
         "products.cu", Engine::kSource, kLarge});
    add({"edge-tile", "products: a tile of half the height is taken for one of half the width too",
         {{"fma_tiles.h", "if (wide) return product_tile<1, 2>(t, room);", "if (wide) return product_tile<1, 1>(t, room);"}},
         "products.cu", Engine::kSource, kLarge});
    add({"product-entry", "products: the first tile of a product is taken for the last of the one before",
         {{"sums.h", "if (entries[middle].*first <= position) {", "if (entries[middle].*first < position) {"}},
         "products.cu", Engine::kSource, kLarge});
    add({"depth-tail", "products: the whole slice is used where less is left",
         {{"fma_tiles.h", "add_slice<P, Q>(sum, a[now], b[now], depth - k);", "add_slice<P, Q>(sum, a[now], b[now], kSlice);"}},
         "products.cu", Engine::kSource, kLarge});
    add({"slice-lane", "products: lanes of a transposed copy take one element twice",
         {{"fma_tiles.h", "const int d = thread % 8 + thread / 32 % 2 * 8;", "const int d = thread % 8 + thread / 64 % 2 * 8;"}}, "products.cu", Engine::kSource, kLarge});
    add({"product-diagonal", "products: the second result is the first",
         {{"tiles.h", "j == i + below ? rounded_to<Element>(to_float(stored) + t.diagonal) : stored", "stored"}}, "products.cu", Engine::kSource, kLarge});
    add({"product-flag", "products: a result out of range is that of the first client",
         {{"tiles.h", "p.flags + client * p.flag_stride + entry.matrix", "p.flags + entry.matrix"}}, "products.cu",
         Engine::kSource, {"newton_schulz_of_a_large_matrix_that_leaves_the_range"}});
    // ---- Tensor cores ----
    const std::vector<std::string> kTensor = {"newton_schulz_on_tensor_cores_is_that_of_the_cpu",
                                              "newton_schulz_of_large_matrices_on_tensor_cores"};
    const auto tensor = [&](const char *name, const char *words, const char *from, const char *to, Engine engine = Engine::kSource) {
        add({name, words, {{"mma_tiles.h", from, to}}, "products_mma.cu", engine, kTensor});
    };
    tensor("mma-wait", "tensor cores: the copies of a slice are not waited for", "            wait_copies<1>();\n", "",
           Engine::kPtx);
    tensor("mma-wait-last", "tensor cores: the copies of the last slice are not waited for", "            wait_copies<0>();\n", "",
           Engine::kPtx);
    tensor("mma-barrier", "tensor cores: a slice is used before the other threads' copies are there",
           "        __syncthreads();\n        const int lane", "        const int lane", Engine::kPtx);
    tensor("mma-barrier-again", "tensor cores: the next slice is fetched while some still use this one",
           "        __syncthreads();\n        now = 1 - now;", "        now = 1 - now;", Engine::kPtx);
    tensor("mma-stale", "tensor cores: the buffers of the pair are not exchanged", "        now = 1 - now;\n", "");
    tensor("mma-stage", "tensor cores: a quarter is stored before all warps have staged it",
           "        __syncthreads();\n        bad = store_quarter", "        bad = store_quarter", Engine::kPtx);
    tensor("mma-left", "tensor cores: the halves of the first factor's fragment are exchanged",
           "(2 * s ^ (lane / 16 ^ lane / 2 % 4))", "(2 * s ^ (1 ^ lane / 16 ^ lane / 2 % 4))");
    tensor("mma-left-transposed", "tensor cores: a transposed fragment takes its rows for its depth",
           "16 * s + lane % 8 + lane / 16 * 8", "16 * s + lane % 16");
    tensor("mma-right", "tensor cores: the two fragments of the second factor are exchanged",
           "const uint32_t first[2] = {right[0], right[1]};\n                const uint32_t second[2] = {right[2], right[3]};",
           "const uint32_t first[2] = {right[2], right[3]};\n                const uint32_t second[2] = {right[0], right[1]};");
    tensor("mma-right-halves", "tensor cores: the fragment of the second factor has its depth exchanged",
           "const uint32_t first[2] = {right[0], right[1]};", "const uint32_t first[2] = {right[1], right[0]};");
    tensor("mma-tf32-lane", "tensor cores: a lane of a transposed tf32 fragment takes its neighbour's depth",
           "(8 * s + lane % 4 + deep)", "(8 * s + (lane + 1) % 4 + deep)");
    tensor("mma-swizzle", "tensor cores: vectors are stored without the permutation that loads expect",
           "vectors + i * kDeepVectors + (v ^ (i / 2 % kDeepVectors))", "vectors + i * kDeepVectors + v");
    tensor("mma-depth", "tensor cores: what follows the last element of the depth is multiplied",
           "(Along ? deep : count) - v * S::kElements;", "(Along ? S::kDepth : count) - v * S::kElements;");
    tensor("mma-result", "tensor cores: the lower half of a result is stored over the upper one",
           "stage[row + 8][col] = sum[i][j][2];", "stage[row][col] = sum[i][j][2];");

    add({"large-flag", "large matrices: what left the range before is never stepped again",
         {{"large_schulz.cu", "        if (c.first == 0) s.flags[c.client * s.count + c.number] = 0;\n", ""}}, "large_schulz.cu",
         Engine::kSource, {"newton_schulz_after_one_that_left_the_range"}});
    add({"large-chunk", "large matrices: the chunks of a matrix are taken for those of the one before",
         {{"large_schulz.cu", "(chunk - matrix.first_chunk) * kChunk", "chunk * kChunk"}}, "large_schulz.cu", Engine::kSource,
         kLarge});

    // ---- Newton-Schulz ----
    // Edits of the device code of small matrices, and of the norms before them.
    const auto small = [&add](const char *name, const char *bug, const char *search, const char *replacement, Engine engine,
                              std::vector<std::string> tests, int arch = 89) {
        add({name, std::string("Newton-Schulz: ") + bug, {{"small_schulz.h", search, replacement}}, "small_schulz.cu", engine,
             std::move(tests), false, arch});
    };
    // The same of the code that all precisions have in common.
    const auto common = [&add](const char *name, const char *bug, const char *search, const char *replacement, Engine engine,
                               std::vector<std::string> tests, int arch = 89, const char *unit = "small_schulz.cu") {
        add({name, std::string("Newton-Schulz: ") + bug, {{"small_matrices.h", search, replacement}}, unit, engine,
             std::move(tests), false, arch});
    };
    small("schulz-read-barrier", "the polynomial overwrites what others still read",
          "        if (Poly) __syncthreads();  // everybody has read what is overwritten now\n", "", Engine::kSource, kSmallSchulz);
    small("schulz-product-barrier", "the product is used before all of it is there",
          "    __syncthreads();  // the product is there\n", "", Engine::kSource, kSmallSchulz);
    small("schulz-row-barrier", "rows move while others still read them",
          "    if constexpr (L == kResident) __syncthreads();  // everybody has read the rows that move now\n", "", Engine::kPtx,
          kSmallSchulz);
    small("schulz-y-barrier", "the next step begins before all rows have moved",
          "    __syncthreads();  // everybody has the new Y\n", "", Engine::kSource, kSides);
    common("schulz-panel-barrier", "a panel is used before all of it is there",
           "        __syncthreads();  // this panel is there, and nobody uses the other one any more\n", "", Engine::kSource,
           kLongSchulz, kSmallShared);
    common("schulz-panel-wait", "a panel is used before its copy has ended", "        wait_copies<0>();\n", "", Engine::kPtx,
           kLongSchulz);
    common("schulz-panel-wait-last", "only the panel before is waited for", "        wait_copies<0>();\n",
           "        wait_copies<1>();\n", Engine::kPtx, kLongSchulz);
    common("schulz-panel-stale", "the panels are not exchanged", "minimum(rows, total - first));\n        buffer = 1 - buffer;\n",
           "minimum(rows, total - first));\n", Engine::kSource, kLongSchulz, kSmallShared);
    common("schulz-panel-in-use", "the next panel is copied to the one in use", "begin(first + rows, 1 - buffer);",
           "begin(first + rows, buffer);", Engine::kPtx, kLongSchulz);
    common("schulz-load-panel", "rows on their way to the workspace are overwritten by the next ones",
           "            buffer = 1 - buffer;\n        }\n    }\n    __syncthreads();\n",
           "        }\n    }\n    __syncthreads();\n", Engine::kPtx, kLongSchulz, kSmallShared);
    small("schulz-rows-in-use", "the next rows are copied while others are multiplied",
          "        if (L == kStreamAll) __syncthreads();  // the panels of the Gram matrix are used again\n", "", Engine::kPtx,
          kLongSchulz, kSmallShared);
    small("schulz-panel-place", "a panel of the Gram matrix is multiplied with the first columns of Y",
          "add_product<P, R>(sum, y + first, offset,", "add_product<P, R>(sum, y + 0 * first, offset,", Engine::kSource,
          kLongSchulz, kSmallShared);
    common("schulz-vector-turn", "two threads copy the same vector of a row",
           "            vector -= vectors;\n            ++row;\n", "            vector -= vectors;\n", Engine::kPtx, kLongSchulz);
    common("schulz-range-alone", "each thread decides for itself whether the result is in range",
           "const bool in_range = __syncthreads_or(bad ? 1 : 0) == 0;", "const bool in_range = !bad;", Engine::kSource,
           {"newton_schulz_that_leaves_the_range"});
    common("schulz-tall", "a tall matrix is read as if it were wide",
           "    if (block.rows > block.cols) {\n        // Both have the same rows.",
           "    if (block.rows < 0) {\n        // Both have the same rows.", Engine::kSource, {"newton_schulz_of_a_tall_matrix"});
    common("schulz-padding", "the padding of a tall matrix is not cleared",
           "to[row * pitch + shape.side + e - row * padding] = Element{};",
           "if (factor < 0.0) to[row * pitch + shape.side + e - row * padding] = Element{};", Engine::kSource, kSides);
    small("schulz-mirror", "the mirror image of a tile is not written",
          "        store_near<P>(cols + j * kPitch, mirror);\n", "        (void)mirror;\n", Engine::kSource, kSmallSchulz);
    small("schulz-mirror-column", "the mirror image of every column goes to the row of the first",
          "store_near<P>(cols + j * kPitch, mirror);", "store_near<P>(cols, mirror);", Engine::kSource, kSmallSchulz);
    small("schulz-triangle", "the tiles right of the diagonal are those of the other row of the pair",
          "        unit.row = first + 1 - own % 2;\n        unit.col = lane;",
          "        unit.row = first + own % 2;\n        unit.col = lane;", Engine::kPtx, kSides);
    small("schulz-diagonal", "the left half of the diagonal is computed in place of the right one",
          "unit.col = 2 * unit.row + 1;", "unit.col = 2 * unit.row;", Engine::kSource, kSides);
    small("schulz-extra", "what is left of the diagonal is forgotten",
          "    if (unit.has_extra) {\n        *extra = sum.extra;", "    if (unit.any && b > 1e30f) {\n        *extra = sum.extra;",
          Engine::kSource, kSides);
    small("schulz-extra-mirror", "what is left of the diagonal has no mirror image",
          "        diagonal[unit.extra_col * kPitch + unit.extra_row] = sum.extra;\n", "", Engine::kSource, kSides);
    small("schulz-extra-rank", "two lanes have the same element of the diagonal",
          "rank = first + 1 + (own - first - 1) / 2 * 2", "rank = first + (own - first - 1) / 2 * 2", Engine::kPtx, kSides);
    small("schulz-few-rows", "rows that are left over are not updated",
          "    if (count - done > kGroups) some(Rows<2>{});\n", "", Engine::kSource, kSides);
    small("schulz-eight-lanes", "neighbouring groups of lanes have columns in common", "eight / kGroups * 32", "eight / kGroups * 28",
          Engine::kPtx, kSides);
    common("schulz-client-stride", "w is stepped at the stride of m", "s.of.w + task.client * s.of.w_stride",
           "s.of.w + task.client * s.of.m_stride", Engine::kSource, kSmallSchulz);
    add({"schulz-queue-barrier", "Newton-Schulz: the next matrix is taken while some still store the last",
         {{"small_matrices.h", "        __syncthreads();  // everybody is done with this one and its place\n", ""}},
         "small_schulz.cu", Engine::kPtx, kSmallSchulz});

    // ---- Small matrices on tensor cores ----
    const std::vector<std::string> kSmallTensor = {"newton_schulz_of_small_matrices_on_tensor_cores"};
    const std::vector<std::string> kLongTensor = {"newton_schulz_of_streams_on_tensor_cores"};
    const auto small_mma = [&add](const char *name, const char *bug, const char *search, const char *replacement, Engine engine,
                                  std::vector<std::string> tests) {
        add({name, std::string("small matrices on tensor cores: ") + bug, {{"small_schulz_mma.h", search, replacement}},
             "small_schulz_mma.cu", engine, std::move(tests)});
    };
    small_mma("small-mma-read-barrier", "the polynomial overwrites what others still read",
              "        __syncthreads();  // everybody has read what is overwritten now\n", "", Engine::kPtx, kSmallTensor);
    small_mma("small-mma-product-barrier", "the product is used before all of it is there",
              "    __syncthreads();  // the product is there\n", "", Engine::kSource, kSmallTensor);
    small_mma("small-mma-row-barrier", "rows move while others still read them",
              "    __syncthreads();  // everybody has read the rows that move now\n", "", Engine::kPtx, kSmallTensor);
    small_mma("small-mma-y-barrier", "the next step begins before all rows have moved",
              "    __syncthreads();  // everybody has the new Y\n", "", Engine::kSource, kSmallTensor);
    small_mma("small-mma-panel-barrier", "a panel is copied to the workspace before all of its rows have moved",
              "            __syncthreads();  // all rows of the panel have moved\n", "", Engine::kPtx, kLongTensor);
    common("small-mma-panel-wait", "on tensor cores a panel is used before its copy has ended", "        wait_copies<0>();\n", "",
           Engine::kPtx, kLongTensor, 89, "small_schulz_mma.cu");
    common("small-mma-panel-in-use", "on tensor cores the next panel is copied to the one in use",
           "begin(first + rows, 1 - buffer);", "begin(first + rows, buffer);", Engine::kPtx, kLongTensor, 89,
           "small_schulz_mma.cu");
    common("small-mma-padding", "on tensor cores the rows that follow the last one are not cleared",
           "    if constexpr (Kind::kRows > 1) clear_rows(", "    if constexpr (Kind::kRows > 16) clear_rows(", Engine::kSource,
           kSmallTensor, 89, "small_schulz_mma.cu");
    small_mma("small-mma-mirror", "the mirror image of two columns goes to one row",
              "image[(right + 1) * kPitch + lower] = element[1];", "image[right * kPitch + lower] = element[1];",
              Engine::kSource, kSmallTensor);
    small_mma("small-mma-mirror-halves", "the mirror image of the lower half of a tile goes to that of the upper one",
              "image[right * kPitch + lower] = element[0];", "image[right * kPitch] = element[0];", Engine::kSource, kSmallTensor);
    small_mma("small-mma-triangle", "the tiles half a turn away are left out", "N % 2 != 0 || row < N / 2 ?",
              "N % 2 != 0 || row < N / 2 - 1 ?", Engine::kSource, kSmallTensor);
    small_mma("small-mma-turn", "tiles beyond the last column are those of the second one", "row + turn : row + turn - N;",
              "row + turn : row + turn - N + 1;", Engine::kSource, kSmallTensor);
    small_mma("small-mma-left-again", "the first factor is that of the row of tiles before",
              "if (m == 0 || stretch.row[m] != stretch.row[m - 1])", "if (m == 0)", Engine::kSource, kSmallTensor);
    small_mma("small-mma-left-transposed", "a transposed fragment takes its rows for its depth",
              "return (lane % 8 + lane / 16 * 8) * pitch + lane / 8 % 2 * 8;", "return lane % 16 * pitch + lane / 16 * 8;",
              Engine::kSource, kSmallTensor);
    small_mma("small-mma-right-transposed", "the second factor has its columns for its depth",
              "return lane % 16 * pitch + lane / 16 * 8;", "return (lane % 8 + lane / 16 * 8) * pitch + lane / 8 % 2 * 8;",
              Engine::kSource, kSmallTensor);
    small_mma("small-mma-tf32-depth", "the factors of tf32 have their depths in different orders",
              "b[i] = __float_as_uint(at[i % 2 * pitch + i / 2 * 8]);",
              "b[i] = __float_as_uint(at[(1 - i % 2) * pitch + i / 2 * 8]);", Engine::kSource, kSmallTensor);
    add({"small-mma-tf32-cut", "small matrices on tensor cores: factors are cut to tf32 instead of rounded",
         {{"fragments.h", "r[i] = to_tf32(__uint_as_float(r[i]));", "r[i] = r[i] & ~0x1fffu;"}}, "small_schulz_mma.cu",
         Engine::kSource, kSmallTensor});
    small_mma("small-mma-halves", "the fragment of the second factor has its depth exchanged",
              "const uint32_t second[2] = {b[2], b[3]};", "const uint32_t second[2] = {b[3], b[2]};", Engine::kSource,
              kSmallTensor);
    small_mma("small-mma-part", "the last part of a row has as many tiles as the others",
              "kTiles * P == N ? kTiles : minimum(kTiles, N - first)", "kTiles * P == N ? kTiles : kTiles + 0 * minimum(kTiles, N - first)",
              Engine::kSource, kSmallTensor);
    small_mma("small-mma-rows-left", "the last rows of tiles are not updated", "done < rows;)", "done + 1 < rows;)",
              Engine::kSource, kSmallTensor);
    small_mma("small-mma-range", "only the last tile of a thread is looked at for what left the range",
              "bad = round_two(value, element) || bad;", "bad = round_two(value, element) && j == kTiles;", Engine::kSource,
              {"newton_schulz_of_one_matrix_that_leaves_the_range"});

    const std::vector<std::string> kNorms = {"newton_schulz_norms_of_many_pieces"};
    const auto norms = [&add](const char *name, const char *bug, const char *search, const char *replacement, Engine engine,
                              std::vector<std::string> tests) {
        add({name, std::string("norms: ") + bug, {{"schulz_norms.cu", search, replacement}}, "schulz_norms.cu", engine,
             std::move(tests)});
    };
    norms("norms-release", "a sum is counted before it is there for others", "            __threadfence();\n            is_last",
          "            is_last", Engine::kPtx, kNorms);
    norms("norms-acquire", "the sums of others are read before they are there", "? 1 : 0;\n            __threadfence();\n",
          "? 1 : 0;\n", Engine::kPtx, kNorms);
    norms("norms-too-early", "the last piece but one adds up", "static_cast<unsigned>(pieces) - 1 ?",
          "static_cast<unsigned>(pieces) - 2 ?", Engine::kSource, kNorms);
    norms("norms-count", "the count of a matrix is not reset", "            atomicExch(count, 0u);  // for the next launch\n", "",
          Engine::kSource, {"newton_schulz_twice"});
    norms("norms-client", "the norm of a matrix is that of the first client",
          "fcm::norm_of(s.sums + client * s.pieces + entry.first_piece", "fcm::norm_of(s.sums + entry.first_piece",
          Engine::kPtx, kNorms);
    add({"schulz-nan", "Newton-Schulz: NaN in a matrix is not looked for",
         {{"sums.h", "if (not_finite(x[j])) check.found(x + j);", "if (x[j] < -1e30f) check.found(x + j);"}}, "schulz_norms.cu",
         Engine::kSource, {"newton_schulz_finds_what_is_not_finite"}});
    // ---- Streams ----
    add({"copy-not-waited-for", "a copy to the host returns before it is done",
         {{"context.cu", "return wait ? settle(context, error) : fcm_status{FCM_OK};", "(void)wait;\n        return fcm_status{FCM_OK};"}},
         "context.cu", Engine::kSource, {"pinned_copies_are_done_when_they_return"}});
    add({"findings-not-waited-for", "what a kernel found is read before it is there",
         {{"context.cu",
           R"(    check(cudaStreamSynchronize(context->stream), "cudaStreamSynchronize");
    if (!asked) return FCM_OK;)",
           "    if (!asked) return FCM_OK;"}},
         "context.cu", Engine::kSource, {"first_that_is_not_finite"}});
    add({"copy-order-before", "a copy between devices does not wait for the first device",
         {{"context.cu", "if (to_context != from_context) order(from_context, to_context);", ""}}, "context.cu",
         Engine::kSource, {"copies_between_devices_are_in_order"}});
    add({"copy-order-after", "what the first device does next does not wait for the copy",
         {{"context.cu", "if (to_context != from_context) order(to_context, from_context);", ""}}, "context.cu",
         Engine::kSource, {"copies_between_devices_are_in_order"}});
    add({"event-not-waited-for", "an event holds nobody up",
         {{"context.cu", "check(cudaStreamWaitEvent(context->stream, event->event, 0), \"cudaStreamWaitEvent\");", ""}},
         "context.cu", Engine::kSource, {"events_hold_up_who_waits"}});
    return all;
}

}  // namespace

const std::vector<Mutant> &mutants() {
    static const std::vector<Mutant> kAll = make();
    return kAll;
}

const Edit &few_blocks() {
    static const Edit kFew = {"context.h", "constexpr int64_t kMostBlocks = 1 << 16;", "constexpr int64_t kMostBlocks = 3;"};
    return kFew;
}

}  // namespace mutation
