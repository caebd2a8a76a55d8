package org.fedcomuon.device;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.InstanceOfAssertFactories.THROWABLE;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicReference;
import java.util.logging.Handler;
import java.util.logging.LogRecord;
import java.util.logging.Logger;
import java.util.logging.SimpleFormatter;
import org.fedcomuon.testing.GpuSuite;
import org.fedcomuon.testing.TestDevices;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.Parameter;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.provider.MethodSource;

/** Lifetimes that cannot be got wrong quietly. */
@GpuSuite
@ParameterizedClass
@MethodSource("org.fedcomuon.testing.TestDevices#names")
class BufferIT {
    @Parameter
    private String name;

    @Test
    void aNewBufferIsZeroAndKeepsWhatIsWritten() {
        try (Device device = TestDevices.open(name);
                Buffer floats = device.allocate("floats", ElementType.FLOAT32, 600_000);
                Buffer doubles = device.allocate("doubles", ElementType.FLOAT64, 3)) {
            assertThat(floats.toFloats(0, 600_000)).containsOnly(0f);
            var many = new float[500_000]; // more than one stage
            for (int i = 0; i < many.length; i++) {
                many[i] = i;
            }
            floats.copyIn(3, many);
            assertThat(floats.toFloats(3, many.length)).isEqualTo(many);
            assertThat(floats.toFloats(0, 3)).containsOnly(0f);
            assertThat(floats.toDoubles(4, 2)).containsExactly(1.0, 2.0); // widened
            doubles.copyIn(1, 2.5, -1.0);
            assertThat(doubles.toDoubles(0, 3)).containsExactly(0, 2.5, -1.0);
            floats.zero();
            assertThat(floats.toFloats(0, 600_000)).containsOnly(0f);
            assertThat(device.liveBytes()).isEqualTo(600_000 * 4 + 3 * 8);
        }
    }

    @Test
    void copiesOutsideTheBufferAreRefused() {
        try (Device device = TestDevices.open(name);
                Buffer buffer = device.allocate("x", ElementType.FLOAT32, 4)) {
            assertThatThrownBy(() -> buffer.copyIn(3, 1f, 2f)).isInstanceOf(DeviceException.InvalidOperand.class);
            assertThatThrownBy(() -> buffer.copyIn(-1, 1f)).isInstanceOf(DeviceException.InvalidOperand.class);
            assertThatThrownBy(() -> buffer.toFloats(0, 5)).isInstanceOf(DeviceException.InvalidOperand.class);
            assertThatThrownBy(() -> buffer.copyIn(0, 1.0)).isInstanceOf(DeviceException.InvalidOperand.class);
            assertThat(buffer.toFloats(0, 4)).containsOnly(0f);
        }
    }

    @Test
    void closingTwiceIsFineAndUsingAfterwardsIsNot() {
        try (Device device = TestDevices.open(name)) {
            Buffer buffer = device.allocate("momentum", ElementType.FLOAT32, 10);
            Batch batch = buffer.batch(1, 10);
            buffer.close();
            assertThatCode(buffer::close).doesNotThrowAnyException();
            assertThat(buffer.isClosed()).isTrue();
            assertThat(device.liveBytes()).isZero();
            assertThatThrownBy(buffer::address)
                    .isInstanceOf(IllegalStateException.class)
                    .hasMessageContaining("momentum of %s is closed".formatted(name));
            assertThatThrownBy(() -> buffer.toFloats(0, 1)).isInstanceOf(IllegalStateException.class);
            assertThatThrownBy(() -> device.average(batch)).isInstanceOf(IllegalStateException.class);
        }
    }

    @Test
    void aClosedDeviceRefusesEverything() {
        Device device = TestDevices.open(name);
        device.close();
        assertThatCode(device::close).doesNotThrowAnyException();
        assertThatThrownBy(() -> device.allocate("x", ElementType.FLOAT32, 1))
                .isInstanceOf(IllegalStateException.class)
                .hasMessageContaining(name + " is closed");
        assertThatThrownBy(device::liveBytes).isInstanceOf(IllegalStateException.class);
        assertThatThrownBy(device::blas).isInstanceOf(IllegalStateException.class);
    }

    @Test
    void aBufferOfAnotherDeviceIsRefused() {
        try (Device here = TestDevices.open(name);
                Device there = TestDevices.open(TestDevices.other(name));
                Buffer x = here.allocate("x", ElementType.FLOAT32, 8);
                Buffer y = there.allocate("y", ElementType.FLOAT32, 8)) {
            assertThatThrownBy(() -> here.ema(0.5, x.batch(1, 8), y.batch(1, 8)))
                    .isInstanceOf(DeviceException.InvalidOperand.class)
                    .hasMessageContaining("y is on %s, not on %s".formatted(TestDevices.other(name), name));
        }
    }

    @Test
    void copiesBetweenDevices() {
        try (Device here = TestDevices.open(name);
                Device there = TestDevices.open(TestDevices.other(name));
                Buffer x = here.allocate("x", ElementType.FLOAT32, 8);
                Buffer y = there.allocate("y", ElementType.FLOAT32, 8);
                Buffer doubles = here.allocate("z", ElementType.FLOAT64, 8)) {
            x.copyIn(0, 1f, 2f, 3f);
            y.copyFrom(x, 1, 4, 2);
            assertThat(y.toFloats(0, 8)).containsExactly(0, 0, 0, 0, 2, 3, 0, 0);
            x.copyFrom(x, 0, 4, 3); // within one device, apart
            assertThat(x.toFloats(0, 8)).containsExactly(1, 2, 3, 0, 1, 2, 3, 0);
            assertThatThrownBy(() -> x.copyFrom(x, 0, 1, 3)).isInstanceOf(DeviceException.InvalidOperand.class);
            assertThatThrownBy(() -> x.copyFrom(y, 7, 0, 2)).isInstanceOf(DeviceException.InvalidOperand.class);
            assertThatThrownBy(() -> x.copyFrom(doubles, 0, 0, 2)).isInstanceOf(DeviceException.InvalidOperand.class);
        }
    }

    @Test
    void theHostTouchesOnlyItsOwnMemory() {
        try (Device device = TestDevices.open(name)) {
            Buffer buffer = device.allocate("momentum", ElementType.FLOAT32, 10);
            buffer.copyIn(4, 1f);
            assertThat(buffer.address()).isNotZero();
            if (!device.isHost()) {
                assertThatThrownBy(buffer::segment)
                        .isInstanceOf(IllegalStateException.class)
                        .hasMessageContaining("the host cannot touch momentum: it is on " + name);
                buffer.close();
                return;
            }
            var segment = buffer.segment();
            assertThat(segment.getAtIndex(ValueLayout.JAVA_FLOAT, 4)).isEqualTo(1f);
            assertThat(segment.address()).isEqualTo(buffer.address());
            buffer.close();
            assertThatThrownBy(buffer::segment).isInstanceOf(IllegalStateException.class);
            assertThatThrownBy(() -> segment.get(ValueLayout.JAVA_FLOAT, 0)).isInstanceOf(IllegalStateException.class);
        }
    }

    @Test
    void aMirrorCarriesValuesBothWays() {
        try (Device device = TestDevices.open(name);
                Buffer x = device.allocate("x", ElementType.FLOAT32, 6);
                Buffer y = device.allocate("y", ElementType.FLOAT32, 6)) {
            Buffer.Mirror mirror = x.mirror();
            var here = mirror.segment();
            assertThat(here.byteSize()).isEqualTo(24);
            x.copyIn(0, 1f, 2f, 3f, 4f, 5f, 6f);
            mirror.fetch(0, 6);
            device.synchronize();
            assertThat(here.toArray(ValueLayout.JAVA_FLOAT)).containsExactly(1, 2, 3, 4, 5, 6);
            here.setAtIndex(ValueLayout.JAVA_FLOAT, 2, 30);
            here.setAtIndex(ValueLayout.JAVA_FLOAT, 3, 40);
            mirror.store(2, 2);
            device.ema(0.5, x.batch(1, 6), y.batch(1, 6)); // after the copy, without a wait
            assertThat(y.toFloats(0, 6)).containsExactly(0.5f, 1, 15, 20, 2.5f, 3);
            mirror.fetch(0, 2);
            device.synchronize();
            assertThat(here.toArray(ValueLayout.JAVA_FLOAT)).containsExactly(1, 2, 30, 40, 5, 6);
            assertThat(device.liveBytes()).isEqualTo(48);
            assertThatThrownBy(() -> mirror.fetch(5, 2)).isInstanceOf(DeviceException.InvalidOperand.class);
            assertThatThrownBy(() -> mirror.store(-1, 2)).isInstanceOf(DeviceException.InvalidOperand.class);
            mirror.close();
            if (!device.isHost()) {
                assertThatThrownBy(mirror::segment).isInstanceOf(IllegalStateException.class);
                assertThatThrownBy(() -> mirror.fetch(0, 1)).isInstanceOf(IllegalStateException.class);
            }
        }
    }

    @Test
    void fillsAndCopiesHostMemoryOfAnyKind() {
        try (Device device = TestDevices.open(name);
                Arena arena = Arena.ofConfined();
                Buffer floats = device.allocate("floats", ElementType.FLOAT32, 300_001);
                Buffer doubles = device.allocate("doubles", ElementType.FLOAT64, 3)) {
            floats.fill(0.1);
            assertThat(floats.toFloats(0, 300_001)).containsOnly(0.1f);
            doubles.fill(0.1);
            assertThat(doubles.toDoubles(0, 3)).containsOnly(0.1);
            var outside = arena.allocate(ValueLayout.JAVA_FLOAT, 300_000);
            floats.copyIn(0, 7f);
            floats.copyOut(0, outside);
            assertThat(outside.getAtIndex(ValueLayout.JAVA_FLOAT, 0)).isEqualTo(7f);
            assertThat(outside.getAtIndex(ValueLayout.JAVA_FLOAT, 299_999)).isEqualTo(0.1f);
            outside.fill((byte) 0);
            floats.copyIn(1, outside);
            assertThat(floats.toFloats(0, 2)).containsExactly(7f, 0f);
            assertThatThrownBy(() -> floats.copyIn(2, outside)).isInstanceOf(DeviceException.InvalidOperand.class);
            assertThatThrownBy(() -> floats.copyOut(0, outside.asSlice(0, 5)))
                    .isInstanceOf(DeviceException.InvalidOperand.class);
        }
    }

    @Test
    void holdsIntegers() {
        try (Device device = TestDevices.open(name);
                Buffer bytes = device.allocate("bytes", ElementType.UINT8, 300_001);
                Buffer longs = device.allocate("longs", ElementType.INT64, 300_001);
                Buffer others = device.allocate("others", ElementType.INT64, 3)) {
            assertThat(device.liveBytes()).isEqualTo(9 * 300_001 + 24);
            assertThat(bytes.toBytes(299_998, 3)).containsOnly(0);
            bytes.fill(255);
            longs.fill(-7);
            assertThat(bytes.toBytes(0, 300_001)).containsOnly((byte) 255);
            assertThat(longs.toLongs(0, 300_001)).containsOnly(-7);
            bytes.copyIn(299_999, new byte[] {1, (byte) 200});
            longs.copyIn(299_999, new long[] {Long.MIN_VALUE, Long.MAX_VALUE});
            assertThat(bytes.toBytes(299_998, 3)).containsExactly((byte) 255, (byte) 1, (byte) 200);
            assertThat(longs.toLongs(299_998, 3)).containsExactly(-7, Long.MIN_VALUE, Long.MAX_VALUE);
            others.copyFrom(longs, 299_999, 1, 2);
            assertThat(others.toLongs(0, 3)).containsExactly(0, Long.MIN_VALUE, Long.MAX_VALUE);
            others.zero();
            assertThat(others.toLongs(0, 3)).containsOnly(0);

            assertThatThrownBy(() -> bytes.copyIn(300_000, new byte[2]))
                    .isInstanceOf(DeviceException.InvalidOperand.class);
            assertThatThrownBy(() -> bytes.copyIn(0, 1f)).hasMessageContaining("UINT8");
            assertThatThrownBy(() -> longs.toDoubles(0, 1)).hasMessageContaining("INT64");
            assertThatThrownBy(() -> longs.toBytes(0, 1)).hasMessageContaining("INT64");
            assertThatThrownBy(() -> others.copyFrom(bytes, 0, 0, 1)).hasMessageContaining("UINT8");
            assertThatThrownBy(() -> device.firstNotFinite(longs.batch(1, 3))).hasMessageContaining("INT64");
            assertThatThrownBy(() -> Matrix.of(longs, 0, 2, 2)).hasMessageContaining("INT64");
        }
    }

    @Test
    void copiesBetweenADeviceAndTheCpu() {
        try (Device device = TestDevices.open(name);
                Device cpu = Devices.open("cpu:7");
                Buffer x = device.allocate("x", ElementType.FLOAT32, 4);
                Buffer y = cpu.allocate("y", ElementType.FLOAT32, 4)) {
            x.copyIn(0, 1f, 2f, 3f, 4f);
            y.copyFrom(x, 1, 0, 3);
            assertThat(y.toFloats(0, 4)).containsExactly(2, 3, 4, 0);
            y.copyIn(0, 9f);
            x.copyFrom(y, 0, 3, 1);
            assertThat(x.toFloats(0, 4)).containsExactly(1, 2, 3, 9);
        }
    }

    @Test
    void moreMemoryThanThereIsIsRefused() {
        try (Device device = TestDevices.open(name)) {
            assertThatThrownBy(() -> device.allocate("huge", ElementType.FLOAT32, 1L << 50))
                    .isInstanceOf(DeviceException.OutOfMemory.class)
                    .hasMessageContaining("bytes asked");
            assertThatThrownBy(() -> device.allocate("overflow", ElementType.FLOAT64, Long.MAX_VALUE))
                    .isInstanceOf(DeviceException.InvalidOperand.class);
            assertThatThrownBy(() -> device.allocate("negative", ElementType.FLOAT64, -1))
                    .isInstanceOf(DeviceException.InvalidOperand.class);
            assertThat(device.liveBytes()).isZero();
        }
    }

    @Test
    void aDeviceBelongsToItsThread() throws InterruptedException {
        try (Device device = TestDevices.open(name);
                Buffer x = device.allocate("x", ElementType.FLOAT32, 8)) {
            assertThat(failureOn(Thread.ofPlatform(), () -> device.average(x.batch(1, 8))))
                    .isInstanceOf(WrongThreadException.class)
                    .hasMessageContaining(name);
            assertThat(failureOn(Thread.ofPlatform(), () -> device.average(x.batch(1, 8), new double[] {1}, 1)))
                    .isInstanceOf(WrongThreadException.class);
            assertThat(failureOn(Thread.ofPlatform(), device::close)).isInstanceOf(WrongThreadException.class);
            assertThat(failureOn(Thread.ofPlatform(), device::liveBytes)).isNull();
            assertThat(failureOn(Thread.ofPlatform(), x::close)).isNull();
            assertThat(device.liveBytes()).isZero();
        }
        assertThat(failureOn(Thread.ofVirtual(), () -> TestDevices.open(name)))
                .isInstanceOf(IllegalStateException.class)
                .hasMessageContaining("virtual");
    }

    /** As by a copy to another device, on whose thread it runs. */
    @Test
    void aDeviceWhoseMemoryIsInUseClosesLater() throws Throwable {
        Device device = Devices.open("cpu:0");
        Buffer x = device.allocate("x", ElementType.FLOAT32, 2);
        var refused = new ArrayList<RuntimeException>();
        whileNativeCodeUses(x.segment(), () -> {
            try {
                device.close();
            } catch (IllegalStateException e) {
                refused.add(e);
            }
        });
        assertThat(refused)
                .isNotEmpty()
                .first()
                .asInstanceOf(THROWABLE)
                .hasMessage("cpu:0 is in use on another thread");
        assertThat(x.isClosed()).isFalse();
        device.close();
        assertThat(x.isClosed()).isTrue();
        assertThatThrownBy(device::liveBytes).hasMessage("cpu:0 is closed");
    }

    /** By the C library's qsort, which asks for the order. */
    private static void whileNativeCodeUses(MemorySegment two, Runnable task) throws Throwable {
        Linker linker = Linker.nativeLinker();
        MethodHandle order = MethodHandles.dropArguments(
                MethodHandles.filterReturnValue(
                        MethodHandles.lookup()
                                .findVirtual(Runnable.class, "run", MethodType.methodType(void.class))
                                .bindTo(task),
                        MethodHandles.constant(int.class, 0)),
                0,
                MemorySegment.class,
                MemorySegment.class);
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment callback = linker.upcallStub(
                    order,
                    FunctionDescriptor.of(ValueLayout.JAVA_INT, ValueLayout.ADDRESS, ValueLayout.ADDRESS),
                    arena);
            MethodHandle sort = linker.downcallHandle(
                    linker.defaultLookup().find("qsort").orElseThrow(),
                    FunctionDescriptor.ofVoid(
                            ValueLayout.ADDRESS, ValueLayout.JAVA_LONG, ValueLayout.JAVA_LONG, ValueLayout.ADDRESS));
            sort.invokeExact(two, 2L, 4L, callback);
        }
    }

    private static Throwable failureOn(Thread.Builder kind, Runnable task) throws InterruptedException {
        var failure = new AtomicReference<Throwable>();
        Thread thread = kind.unstarted(() -> {
            try {
                task.run();
            } catch (RuntimeException e) {
                failure.set(e);
            }
        });
        thread.start();
        thread.join();
        return failure.get();
    }

    @Test
    void buffersLeftOpenAreReportedWhenTheDeviceCloses() {
        List<String> log = captureWarnings(Device.class, () -> {
            Device device = TestDevices.open(name);
            Buffer forgotten = device.allocate("forgotten", ElementType.FLOAT32, 100);
            Buffer closed = device.allocate("closed", ElementType.FLOAT32, 100);
            closed.close();
            device.close();
            assertThat(forgotten.isClosed()).isTrue();
        });
        assertThat(log).singleElement().asString().contains(name, "1 buffers", "forgotten (400 bytes)");
    }

    @Test
    void aBufferNobodyHoldsIsReportedAndFreed() {
        try (Device device = TestDevices.open(name)) {
            List<String> log = captureWarnings(Buffer.class, () -> {
                device.allocate("dropped", ElementType.FLOAT32, 100);
                // The collector decides when; a bounded wait for something that always comes.
                long deadline = System.nanoTime() + 20_000_000_000L;
                while (device.liveBytes() > 0 && System.nanoTime() < deadline) {
                    System.gc();
                    Thread.onSpinWait();
                }
            });
            assertThat(device.liveBytes()).isZero();
            assertThat(log).singleElement().asString().contains(name, "dropped (400 bytes)");
        }
    }

    private static List<String> captureWarnings(Class<?> source, Runnable task) {
        var messages = new CopyOnWriteArrayList<String>();
        var handler = new Handler() {
            private final SimpleFormatter formatter = new SimpleFormatter();

            @Override
            public void publish(LogRecord entry) {
                messages.add(formatter.formatMessage(entry));
            }

            @Override
            public void flush() {}

            @Override
            public void close() {}
        };
        Logger logger = Logger.getLogger(source.getName());
        logger.addHandler(handler);
        logger.setUseParentHandlers(false);
        try {
            task.run();
        } finally {
            logger.removeHandler(handler);
            logger.setUseParentHandlers(true);
        }
        return messages;
    }
}
