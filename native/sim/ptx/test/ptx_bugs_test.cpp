// Bugs in kernels compiled by nvcc: each is found in every order, and no correct kernel is reported.
#include <functional>

#include "fixtures.h"
#include "support.h"

using namespace ptxtest;

namespace {

// `prepare` sets the shape and the arguments of the launch; `words` is part of the message for the wrong kernel.
void pair(const std::string &name, const char *words, const std::function<void(Run &)> &prepare) {
    for (const std::string &file : fixture_files("bugs")) {
        Program program;
        program.load_file(file);
        for (const Order &order : orders()) {
            const std::string where = file + " " + name + ", " + order_name(order);
            Run right(program, name + "_right");
            right.launch.order = order;
            prepare(right);
            const std::string none = right.fault();
            CHECK(none.empty(), "%s is right: %s", where.c_str(), none.c_str());
            Run wrong(program, name + "_wrong");
            wrong.launch.order = order;
            prepare(wrong);
            const std::string fault = wrong.fault();
            CHECK(has(fault, words), "%s: '%s' instead of '%s'", where.c_str(), fault.c_str(), words);
            CHECK(fault.empty() || has(wrong.last_source, "bugs.cu:"), "the source is named: '%s'",
                wrong.last_source.c_str());
        }
    }
}

}  // namespace

TEST(a_missing_barrier) {
    // Depending on which thread runs first, the word was written by another thread or is still unwritten.
    pair("reverse_in_block", "", [](Run &run) {
        run.launch.block.x = 128;
        run.launch.grid.x = 2;
        run.with(run.memory.make<float>(256, 1.0f));
    });
    pair("rounds", "race", [](Run &run) {
        run.launch.block.x = 128;
        run.with(run.memory.make<float>(128, 1.0f));
    });
    for (const std::string &file : fixture_files("bugs")) {
        Program program;
        program.load_file(file);
        for (const Order &order : orders()) {
            Run run(program, "reverse_in_block_wrong");
            run.launch.order = order;
            run.launch.block.x = 128;
            const std::string fault = run.with(run.memory.make<float>(128, 1.0f)).fault();
            CHECK(has(fault, "race") || has(fault, "nobody in the block has written"), "'%s'", fault.c_str());
        }
    }
}

TEST(a_missing_warp_barrier) {
    for (const std::string &file : fixture_files("bugs")) {
        Program program;
        program.load_file(file);
        for (const Order &order : orders()) {
            for (const bool bug : {false, true}) {
                Run run(program, bug ? "warp_exchange_wrong" : "warp_exchange_right");
                run.launch.order = order;
                run.launch.block.x = 32;
                const std::string fault = run.with(run.memory.make<float>(32, 1.0f)).fault();
                CHECK(bug ? has(fault, "race") || has(fault, "nobody in the block has written") : fault.empty(),
                    "'%s'", fault.c_str());
            }
        }
    }
}

TEST(a_missing_atomic) {
    pair("count_negative", "race", [](Run &run) {
        run.launch.block.x = 64;
        run.launch.grid.x = 2;
        run.with(run.memory.make<float>(128, -1.0f)).with(run.memory.make<int>(1)).with(128);
    });
}

TEST(one_too_many) {
    pair("scale", "nobody's", [](Run &run) {
        run.launch.block.x = 64;
        run.launch.grid.x = 2;
        run.with(run.memory.make<float>(100)).with(100);
    });
}

TEST(an_unaligned_vector) {
    pair("scale4", "multiple of 16", [](Run &run) {
        run.launch.block.x = 16;
        run.with(run.memory.make<float>(64)).with(64);
    });
}

TEST(shared_memory_overrun) {
    pair("transpose", "shared memory at offset", [](Run &run) {
        run.launch.block.x = 256;
        run.with(run.memory.make<float>(256)).with(run.memory.make<float>(256));
    });
}

TEST(shared_memory_nobody_wrote) {
    pair("prefix", "nobody in the block has written", [](Run &run) {
        run.launch.block.x = 64;
        run.with(run.memory.make<float>(50)).with(run.memory.make<float>(64)).with(50);
    });
}

TEST(a_barrier_in_a_branch) {
    pair("barrier_in_branch", "barrier", [](Run &run) {
        run.launch.block.x = 64;
        run.with(run.memory.make<float>(50)).with(50);
    });
    pair("early_return", "has exited", [](Run &run) {
        run.launch.block.x = 64;
        run.with(run.memory.make<float>(50)).with(50);
    });
}

TEST(a_mask_with_too_many_lanes) {
    pair("half_warp_sum", "lane", [](Run &run) {
        run.launch.block.x = 32;
        run.with(run.memory.make<float>(32));
    });
}

TEST(an_offset_that_overflows) {
    pair("far_element", "nobody's", [](Run &run) {
        run.launch.block.x = 32;
        run.with(run.memory.make<float>(1056)).with(run.memory.make<float>(32)).with(70000).with(50001);
    });
}

TEST(blocks_that_write_each_others) {
    pair("borders", "race", [](Run &run) {
        run.launch.block.x = 64;
        run.launch.grid.x = 4;
        run.with(run.memory.make<float>(256)).with(run.memory.make<float>(256)).with(256);
    });
}

TEST(a_missing_fence) {
    pair("last_block", "race", [](Run &run) {
        run.launch.block.x = 32;
        run.launch.grid.x = 4;
        run.with(run.memory.make<float>(4, 1.0f)).with(run.memory.make<float>(4));
        run.with(run.memory.make<unsigned>(1)).with(run.memory.make<float>(1));
    });
}
