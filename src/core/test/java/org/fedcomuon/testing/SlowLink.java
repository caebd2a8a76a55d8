package org.fedcomuon.testing;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.SplittableRandom;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;

/**
 * A long link between two Ethernet interfaces, which it makes: what arrives at one leaves the other after a time, or
 * not at all. A kernel with sch_netem could do this, but many have none. {@link TestHosts} starts it as a process.
 */
final class SlowLink {
    /** What interfaces are made with. */
    static final Path DEVICE = Path.of("/dev/net/tun");

    private static final int READ_AND_WRITE = 2; // O_RDWR
    private static final long MAKE_INTERFACE = 0x400454caL; // TUNSETIFF
    private static final int NAME_BYTES = 16;
    private static final long REQUEST_BYTES = 40; // struct ifreq: a name, then flags and more
    private static final short ETHERNET_WITHOUT_HEADER = 0x1002; // IFF_TAP | IFF_NO_PI
    private static final int LONGEST_FRAME = 65_536;
    private static final int MOST_UNDERWAY = 10_000;

    private static final Linker LINKER = Linker.nativeLinker();
    private static final MethodHandle READ = transfer("read");
    private static final MethodHandle WRITE = transfer("write");

    private record Frame(long due, MemorySegment content) {}

    private SlowLink() {}

    /** Two names of interfaces, milliseconds, and the part of all frames that gets lost; runs until its input ends. */
    public static void main(String[] arguments) throws Throwable {
        int near = makeInterface(arguments[0]);
        int far = makeInterface(arguments[1]);
        long delay = TimeUnit.MILLISECONDS.toNanos(Long.parseLong(arguments[2]));
        double lost = Double.parseDouble(arguments[3]);
        relay(near, far, delay, lost);
        relay(far, near, delay, lost);
        System.out.println(TestHosts.READY);
        while (System.in.read() >= 0) {
            // nothing is sent to us
        }
        System.exit(0);
    }

    private static MethodHandle transfer(String name) {
        return LINKER.downcallHandle(
                LINKER.defaultLookup().findOrThrow(name),
                FunctionDescriptor.of(
                        ValueLayout.JAVA_LONG, ValueLayout.JAVA_INT, ValueLayout.ADDRESS, ValueLayout.JAVA_LONG));
    }

    /** Returns its file descriptor; the interface is gone when that is closed. */
    private static int makeInterface(String name) throws Throwable {
        try (Arena arena = Arena.ofConfined()) {
            int file = (int) LINKER.downcallHandle(
                            LINKER.defaultLookup().findOrThrow("open"),
                            FunctionDescriptor.of(ValueLayout.JAVA_INT, ValueLayout.ADDRESS, ValueLayout.JAVA_INT),
                            Linker.Option.firstVariadicArg(2))
                    .invokeExact(arena.allocateFrom(DEVICE.toString()), READ_AND_WRITE);
            MemorySegment request = arena.allocate(REQUEST_BYTES);
            request.setString(0, name, StandardCharsets.US_ASCII);
            request.set(ValueLayout.JAVA_SHORT, NAME_BYTES, ETHERNET_WITHOUT_HEADER);
            int status = (int) LINKER.downcallHandle(
                            LINKER.defaultLookup().findOrThrow("ioctl"),
                            FunctionDescriptor.of(
                                    ValueLayout.JAVA_INT,
                                    ValueLayout.JAVA_INT,
                                    ValueLayout.JAVA_LONG,
                                    ValueLayout.ADDRESS),
                            Linker.Option.firstVariadicArg(2))
                    .invokeExact(file, MAKE_INTERFACE, request);
            if (file < 0 || status != 0) {
                throw new IOException("%s makes no interface %s".formatted(DEVICE, name));
            }
            return file;
        }
    }

    private static void relay(int from, int to, long delay, double lost) {
        BlockingQueue<Frame> underway = new LinkedBlockingQueue<>(MOST_UNDERWAY);
        var chance = new SplittableRandom(from);
        start(() -> {
            MemorySegment frame = Arena.global().allocate(LONGEST_FRAME);
            while (true) {
                long length = (long) READ.invokeExact(from, frame, (long) LONGEST_FRAME);
                if (length < 0) { // the interface is not up yet
                    TimeUnit.MILLISECONDS.sleep(1);
                } else if (chance.nextDouble() >= lost) {
                    // Where there is no room, it gets lost as well.
                    MemorySegment content =
                            MemorySegment.ofArray(frame.asSlice(0, length).toArray(ValueLayout.JAVA_BYTE));
                    underway.offer(new Frame(System.nanoTime() + delay, content));
                }
            }
        });
        start(() -> {
            MemorySegment frame = Arena.global().allocate(LONGEST_FRAME);
            while (true) {
                Frame next = underway.take();
                TimeUnit.NANOSECONDS.sleep(next.due - System.nanoTime());
                MemorySegment.copy(next.content, 0, frame, 0, next.content.byteSize());
                long _ = (long) WRITE.invokeExact(to, frame, next.content.byteSize());
            }
        });
    }

    @FunctionalInterface
    private interface Body {
        void run() throws Throwable;
    }

    private static void start(Body body) {
        Thread.ofPlatform().start(() -> {
            try {
                body.run();
            } catch (Throwable e) {
                throw new AssertionError(e);
            }
        });
    }
}
