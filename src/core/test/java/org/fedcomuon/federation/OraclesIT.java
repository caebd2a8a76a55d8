package org.fedcomuon.federation;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import java.util.stream.Stream;
import org.fedcomuon.method.ClientFault;
import org.fedcomuon.method.ClientFaultException;
import org.fedcomuon.problem.Client;
import org.fedcomuon.problem.Floats;
import org.fedcomuon.problem.Jacobian;
import org.fedcomuon.problem.Point;
import org.fedcomuon.problem.Problem;
import org.fedcomuon.problem.Sample;
import org.fedcomuon.problem.testbed.RateTestbed;
import org.fedcomuon.testing.TestDevices;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests oracles that violate their contract: the run continues or fails, and other runs are not affected. */
@Timeout(value = 120, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class OraclesIT {
    private static final int CLIENTS = 6;

    @TempDir
    private Path directory;

    /** What an oracle does beside its work. */
    interface Mischief {
        void visit(int client, Sample xi, Point w, Floats value) throws Exception;
    }

    private static Federation.Builder run(Mischief mischief) {
        var testbed = new RateTestbed(CLIENTS, 1);
        Problem problem = Problem.of(testbed.layout(), testbed.innerDimension(), CLIENTS, k -> new Client() {
            @Override
            public void inner(Sample xi, Point w, Floats value, Jacobian jacobian) throws Exception {
                testbed.client(k).inner(xi, w, value, jacobian);
                mischief.visit(k, xi, w, value);
            }

            @Override
            public void outerGradient(Sample zeta, Floats y, Floats gradient) throws Exception {
                testbed.client(k).outerGradient(zeta, y, gradient);
            }
        });
        return Federation.of(problem, AllMethods.fedCoMuonVr())
                .iterations(40)
                .tau(4)
                .seed(42)
                .devices("cpu:0", "cpu:1")
                .threads(2)
                .workers(4);
    }

    private static Federation.Builder innocent() {
        return run((client, xi, w, value) -> {});
    }

    private static void assertNothingIsLeft() {
        assertThat(Thread.getAllStackTraces().keySet().stream().map(Thread::getName))
                .noneMatch(name -> name.matches("federation-.*|[a-z]+:[0-9]+-worker-.*"));
    }

    @Test
    void oneThatBlocksHoldsUpItsOwnRunAndNoOther() throws Exception {
        String expected = innocent().build().run().sha256();
        var blocked = new CountDownLatch(1);
        var release = new CountDownLatch(1);
        FederationRun stuck = run((client, xi, w, value) -> {
                    if (client == 4 && xi.draw() == 9) {
                        blocked.countDown();
                        release.await();
                    }
                })
                .checkpoints(directory, 1)
                .build()
                .start();
        blocked.await();
        stuck.stop(); // returns at once, and the step goes on
        assertThat(innocent().build().run().sha256()).isEqualTo(expected);
        assertThat(stuck.isRunning()).isTrue();
        assertThat(stuck.result()).isNotDone();
        release.countDown();
        stuck.close();
        assertThat(stuck.result().get().stopped()).isTrue();
        assertThat(innocent().resume(directory).build().run().sha256()).isEqualTo(expected);
        assertNothingIsLeft();
    }

    @SuppressWarnings("InfiniteRecursion")
    private static int deeper(int depth) {
        return deeper(depth + 1) + 1;
    }

    @SuppressWarnings("unchecked")
    private static <E extends Throwable> void throwAnything(Throwable thrown) throws E {
        throw (E) thrown;
    }

    /** As what Scala returns by from within a closure: neither an exception nor an error. */
    private static final class Foreign extends Throwable {
        private static final long serialVersionUID = 1L;
    }

    static Stream<Mischief> errors() {
        return Stream.of(
                (client, xi, w, value) -> value.set(0, deeper(0)),
                (client, xi, w, value) -> {
                    throw new OutOfMemoryError("pretended");
                },
                (client, xi, w, value) -> {
                    throw new NoClassDefFoundError("pretended");
                },
                (client, xi, w, value) -> throwAnything(new Foreign()));
    }

    @ParameterizedTest
    @MethodSource("errors")
    void anErrorEndsTheRunWhicheverThreadItIsThrownOn(Mischief error) throws Exception {
        for (int broken = 0; broken < CLIENTS; broken++) {
            int who = broken;
            assertThatThrownBy(() -> run((client, xi, w, value) -> {
                                if (client == who && xi.draw() == 5) {
                                    error.visit(client, xi, w, value);
                                }
                            })
                            .onFault(ClientFault.Policy.DROP)
                            .build()
                            .run())
                    .isInstanceOf(Error.class);
            assertNothingIsLeft();
        }
    }

    @Test
    void oneMayStopItsRun() throws Exception {
        var run = new AtomicReference<FederationRun>();
        var started = new CountDownLatch(1);
        run.set(run((client, xi, w, value) -> {
                    started.await();
                    if (xi.draw() > 8) {
                        run.get().stop();
                        run.get().close(); // waits for nobody: it would be for itself
                        Thread.ofPlatform().start(run.get()::close).join();
                    }
                })
                .iterations(1_000_000)
                .build()
                .start());
        started.countDown();
        assertThat(run.get().result().get(60, TimeUnit.SECONDS).stopped()).isTrue();
        run.get().close();
        assertNothingIsLeft();
    }

    @Test
    void aListenerMayCloseItsRun() throws Exception {
        var run = new AtomicReference<FederationRun>();
        var started = new CountDownLatch(1);
        run.set(innocent()
                .iterations(1_000_000)
                .listener(new Listener() {
                    @Override
                    public void onRound(Round round) {
                        try {
                            started.await();
                        } catch (InterruptedException e) {
                            throw new AssertionError(e);
                        }
                        run.get().close();
                    }
                })
                .build()
                .start());
        started.countDown();
        assertThat(run.get().result().get(60, TimeUnit.SECONDS).step()).isEqualTo(4);
    }

    @Test
    void oneThatRunsItsRunAgainIsAFault() {
        var self = new AtomicReference<Federation>();
        self.set(run((client, xi, w, value) -> self.get().run()).build());
        assertThatThrownBy(() -> self.get().run())
                .isInstanceOf(ClientFaultException.class)
                .hasMessageContaining("a federation runs once");
        assertNothingIsLeft();
    }

    static Stream<String> devices() {
        return TestDevices.kinds();
    }

    @ParameterizedTest
    @MethodSource("devices")
    void viewsThatAreKeptAreOfNoUseAfterTheRun(String device) throws Exception {
        List<Floats> kept = new CopyOnWriteArrayList<>();
        run((client, xi, w, value) -> {
                    kept.add(w.values());
                    kept.add(value);
                    kept.add(w.values().slice(3, 5));
                })
                .devices(device)
                .iterations(3)
                .build()
                .run();
        assertThat(kept).isNotEmpty().allSatisfy(view -> {
            assertThatThrownBy(() -> view.get(0)).isInstanceOf(IllegalStateException.class);
            assertThatThrownBy(() -> view.set(0, 1)).isInstanceOf(IllegalStateException.class);
            assertThatThrownBy(view::toArray).isInstanceOf(IllegalStateException.class);
            assertThatThrownBy(() -> view.fill(7)).isInstanceOf(IllegalStateException.class);
        });
    }

    /** What they write to, a run may read or not; but never is it memory that has become another's. */
    @ParameterizedTest
    @MethodSource("devices")
    void threadsThatWriteToViewsLaterEndByAnException(String device) throws Exception {
        List<Thread> writers = new CopyOnWriteArrayList<>();
        List<Throwable> ends = new CopyOnWriteArrayList<>();
        for (int round = 0; round < 2; round++) {
            writers.clear();
            ends.clear();
            run((client, xi, w, value) -> {
                        if (xi.draw() == 3) {
                            writers.add(Thread.ofPlatform().start(() -> {
                                try {
                                    while (true) {
                                        value.set(0, value.get(0));
                                        w.values().fill(0);
                                    }
                                } catch (IllegalStateException e) {
                                    ends.add(e);
                                }
                            }));
                        }
                    })
                    .devices(device)
                    .iterations(8)
                    .build()
                    .run();
            for (Thread writer : writers) {
                assertThat(writer.join(java.time.Duration.ofSeconds(30))).isTrue();
            }
            assertThat(ends).hasSameSizeAs(writers).isNotEmpty();
        }
        assertThat(innocent().build().run().sha256())
                .isEqualTo(innocent().build().run().sha256());
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 4})
    void oneThatInterruptsItsThreadLosesNoCheckpoint(int workers) throws Exception {
        String expected = innocent().build().run().sha256();
        var written = new ArrayList<Long>();
        Result result = run((client, xi, w, value) -> Thread.currentThread().interrupt())
                .workers(workers)
                .checkpoints(directory, 1)
                .listener(new Listener() {
                    @Override
                    public void onCheckpoint(long step, Path file) {
                        written.add(step);
                    }
                })
                .build()
                .run();
        assertThat(result.sha256()).isEqualTo(expected);
        assertThat(written).hasSize(10);
        assertThat(innocent()
                        .resume(new CheckpointStore(directory).all().getFirst())
                        .build()
                        .run()
                        .sha256())
                .isEqualTo(expected);
    }

    @Test
    void anInterruptedCallerStillReadsAndWritesItsCheckpoints() throws Exception {
        String expected = innocent().build().run().sha256();
        innocent().iterations(20).checkpoints(directory, 1).build().run();
        Thread.currentThread().interrupt();
        assertThatThrownBy(() -> innocent()
                        .resume(directory)
                        .checkpoints(directory, 1)
                        .build()
                        .run())
                .isInstanceOf(InterruptedException.class);
        assertThat(Thread.interrupted()).isFalse();
        assertThat(CheckpointStore.step(new CheckpointStore(directory).newest().orElseThrow()))
                .isBetween(20L, 39L);
        assertThat(innocent().resume(directory).build().run().sha256()).isEqualTo(expected);
    }
}
