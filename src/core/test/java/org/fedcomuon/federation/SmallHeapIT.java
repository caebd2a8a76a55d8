package org.fedcomuon.federation;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.fedcomuon.problem.Block;
import org.fedcomuon.problem.Floats;
import org.fedcomuon.problem.Layout;
import org.fedcomuon.problem.Loss;
import org.fedcomuon.problem.Problem;
import org.fedcomuon.problem.Risk;
import org.fedcomuon.testing.ChildJvm;
import org.fedcomuon.testing.Slow;
import org.fedcomuon.testing.Soak;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Weights are outside the heap: a model may be many times larger than it. */
@Slow
class SmallHeapIT {
    private static final int SIDE = 256;

    @TempDir
    private Path directory;

    /** Trains in a process of its own with little heap: the directory, matrices of 256 x 256. */
    static final class Large {
        private Large() {}

        public static void main(String[] arguments) throws Exception {
            Path checkpoints = Path.of(arguments[0]);
            int matrices = Integer.parseInt(arguments[1]);
            var blocks = new ArrayList<Block>();
            for (int i = 0; i < matrices; i++) {
                blocks.add(Block.matrix("weight." + i, SIDE, SIDE));
            }
            var layout = Layout.of(blocks.toArray(Block[]::new));
            Loss loss = (xi, w, gradient) -> {
                for (long i = 0; i < w.values().length(); i++) {
                    gradient.values().set(i, w.values().get(i) - i % 7);
                }
                return w.values().get(0);
            };
            Floats initial = Floats.zeros(layout.length());
            initial.fill(0.5);
            Federation.Builder run = Federation.of(
                            Problem.ofLosses(layout, List.of(loss, loss), Risk.mean()), AllMethods.fedCoMuon())
                    .evaluate(
                            1, (step, w) -> Map.of("first", (double) w.values().get(0)))
                    .checkpoints(checkpoints, 1)
                    .initial(initial);
            String whole = run.iterations(1).build().run().sha256();
            Result again = run.iterations(2).resume(checkpoints).build().run();
            long heap = Runtime.getRuntime().maxMemory();
            System.out.printf(
                    "%d bytes of weights, %d of heap, %s, %s%n",
                    layout.length() * Float.BYTES, heap, whole, again.sha256());
        }
    }

    @Test
    @Tag(Soak.TAG)
    void aModelMayBeLargerThanTheHeap() throws Exception {
        int matrices = Soak.times(384, 2048); // 100 or 537 MB a variable and client
        String heap = Soak.times(48, 256) + "m";
        Process process = new ProcessBuilder(ChildJvm.command(
                        List.of("-Xmx" + heap), Large.class, List.of(directory.toString(), Integer.toString(matrices))))
                .redirectErrorStream(true)
                .start();
        String said = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        assertThat(process.waitFor(1, TimeUnit.MINUTES)).isTrue();
        assertThat(process.exitValue()).as(said).isZero();
        assertThat(said)
                .contains((long) matrices * SIDE * SIDE * Float.BYTES + " bytes of weights")
                .doesNotContain("OutOfMemory");
    }
}
