package org.fedcomuon.federation;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.fedcomuon.method.ClientFault;
import org.fedcomuon.problem.Client;
import org.fedcomuon.problem.Floats;
import org.fedcomuon.problem.Jacobian;
import org.fedcomuon.problem.Point;
import org.fedcomuon.problem.Problem;
import org.fedcomuon.problem.Sample;
import org.fedcomuon.problem.testbed.RateTestbed;
import org.fedcomuon.testing.ChildJvm;
import org.fedcomuon.testing.Slow;
import org.fedcomuon.testing.Soak;
import org.fedcomuon.testing.SoakReport;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** A run of many rounds, with all that a run can have, takes no more memory at its end than in its middle. */
@Slow
class LongRunIT {
    private static final int ROUNDS = Soak.times(200, 10_000);
    private static final int TAU = 2;
    private static final int CLIENTS = 8;

    /** What the second half may take more: the JVM's own tables grow a little, a leak of a round would be far more. */
    private static final long MORE_KIB = 8 << 10;

    @TempDir
    private Path directory;

    /** The run, in a process of its own; prints a line of figures every so often, and one at the end. */
    static final class Child {
        private Child() {}

        public static void main(String[] arguments) throws Exception {
            Path checkpoints = Path.of(arguments[0]);
            int rounds = Integer.parseInt(arguments[1]);
            var testbed = new RateTestbed(CLIENTS, 1);
            Problem problem = Problem.of(testbed.layout(), testbed.innerDimension(), CLIENTS, k -> new Client() {
                @Override
                public void inner(Sample xi, Point w, Floats value, Jacobian jacobian) throws Exception {
                    testbed.client(k).inner(xi, w, value, jacobian);
                    if ((xi.draw() + k) % 97 == 96) {
                        throw new IOException("away");
                    }
                }

                @Override
                public void outerGradient(Sample zeta, Floats y, Floats gradient) throws Exception {
                    testbed.client(k).outerGradient(zeta, y, gradient);
                }
            });
            Result result = Federation.of(problem, AllMethods.fedCoMuonVr())
                    .iterations((long) rounds * TAU)
                    .tau(TAU)
                    .devices("cpu:0", "cpu:1")
                    .workers(4)
                    .onFault(ClientFault.Policy.DROP)
                    .evaluate(
                            10 * TAU,
                            (step, average) ->
                                    Map.of("first", (double) average.values().get(0)))
                    .checkpoints(checkpoints, 20)
                    .listener(new Listener() {
                        @Override
                        public void onRound(Round round) {
                            if ((round.number() + 1) % (rounds / 20) == 0) {
                                print(round.number() + 1);
                            }
                        }
                    })
                    .build()
                    .run();
            System.out.println("faults " + result.faults());
            print(-1);
        }

        private static void print(long round) {
            System.gc();
            Runtime runtime = Runtime.getRuntime();
            try (Stream<Path> files = Files.list(Path.of("/proc/self/fd"));
                    Stream<Path> threads = Files.list(Path.of("/proc/self/task"))) {
                System.out.printf(
                        Locale.ROOT,
                        "figures %d %d %d %d %d%n",
                        round,
                        residentKib(),
                        (runtime.totalMemory() - runtime.freeMemory()) >> 10,
                        threads.count(),
                        files.count());
            } catch (IOException e) {
                throw new AssertionError(e);
            }
        }

        private static long residentKib() throws IOException {
            return Files.readAllLines(Path.of("/proc/self/status")).stream()
                    .filter(line -> line.startsWith("VmRSS:"))
                    .map(line -> line.replaceAll("[^0-9]", ""))
                    .mapToLong(Long::parseLong)
                    .findFirst()
                    .orElseThrow();
        }
    }

    /** In KiB, but for the last two. */
    private record Figures(long round, long resident, long heap, long threads, long files) {
        static Figures of(String line) {
            long[] numbers = Stream.of(line.split(" ", -1))
                    .skip(1)
                    .mapToLong(Long::parseLong)
                    .toArray();
            return new Figures(numbers[0], numbers[1], numbers[2], numbers[3], numbers[4]);
        }
    }

    @Test
    @Timeout(3600)
    @Tag(Soak.TAG)
    void memoryThreadsAndFilesAreFlat() throws Exception {
        Path log = directory.resolve("log");
        Process child = new ProcessBuilder(ChildJvm.command(
                        List.of("-Xmx64m", "-XX:+UseSerialGC"),
                        Child.class,
                        List.of(directory.resolve("checkpoints").toString(), Integer.toString(ROUNDS))))
                .redirectErrorStream(true)
                .redirectOutput(log.toFile())
                .start();
        boolean ended = child.waitFor(50, TimeUnit.MINUTES);
        child.destroyForcibly();
        assertThat(ended).isTrue();
        List<String> lines = Files.readAllLines(log);
        assertThat(child.exitValue())
                .as(lines.subList(0, Math.min(50, lines.size())).toString())
                .isZero();
        List<Figures> all = new ArrayList<>(lines.stream()
                .filter(line -> line.startsWith("figures "))
                .map(Figures::of)
                .toList());
        Figures after = all.removeLast();
        Figures last = all.getLast();
        assertThat(all).hasSize(20);
        List<Figures> half = all.subList(10, 20);
        Figures middle = half.getFirst();
        long faults = lines.stream()
                .filter(line -> line.startsWith("faults "))
                .mapToLong(line -> Long.parseLong(line.substring("faults ".length())))
                .sum();
        assertThat(faults).isGreaterThan(ROUNDS / 100);
        // What a device has left when it is closed, or nobody has closed, it frees and says so.
        List<String> left =
                lines.stream().filter(line -> line.contains("freed now")).toList();
        assertThat(left).isEmpty();
        assertThat(half).allSatisfy(figures -> {
            assertThat(figures.resident()).isLessThanOrEqualTo(middle.resident() + MORE_KIB);
            assertThat(figures.heap()).isLessThanOrEqualTo(middle.heap() + 1024);
            assertThat(figures.threads()).isLessThanOrEqualTo(middle.threads() + 1);
            assertThat(figures.files()).isLessThanOrEqualTo(middle.files() + 2);
        });
        assertThat(after.threads()).isLessThan(last.threads());
        SoakReport.row(
                SoakReport.Table.MEMORY,
                "the rate test-bed, FedCoMuon-VR on two devices",
                "%,d".formatted(ROUNDS),
                "%,d KiB".formatted(middle.resident()),
                "%,d KiB".formatted(last.resident()),
                "%,d KiB".formatted(last.heap()),
                "%d, %d after".formatted(last.threads(), after.threads()),
                "%d, %d after".formatted(last.files(), after.files()),
                "%d".formatted(left.size()),
                "%,d".formatted(faults));
    }
}
