package org.fedcomuon.testing;

import static org.assertj.core.api.Assertions.assertThat;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.reflect.Method;
import java.util.HexFormat;
import java.util.List;
import java.util.Locale;
import java.util.Random;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.jspecify.annotations.Nullable;

/**
 * Gives a reader malformed inputs. Each is read, or refused by an exception of one type with one line: never anything
 * else, never for ever, and with no more memory than an input of its length is worth. {@link #end} says how it went, in
 * figures.
 */
public final class Mutations implements AutoCloseable {
    /** Far beyond any pause of a busy machine, near enough for a person to wait for. */
    private static final long LIMIT_SECONDS = 20;

    private static final int LONGEST_DUMP = 4096;

    private final String reader;
    private final long seed;
    private final Class<? extends Exception> refusal;
    private final ExecutorService thread;
    private volatile @Nullable Thread working;
    private boolean everyThread;
    private long multiple = 16;
    private long constant = 1 << 20;

    private int fed;
    private int read;
    private long slowest;
    private long largest;
    private long offHeap; // of the input under way

    /**
     * @param reader what the figures call it
     * @param seed to name in failures, for a replay
     * @param refusal what the reader throws when it refuses an input
     */
    public Mutations(String reader, long seed, Class<? extends Exception> refusal) {
        this.reader = reader;
        this.seed = seed;
        this.refusal = refusal;
        thread = Executors.newSingleThreadExecutor(task -> {
            Thread made = Thread.ofPlatform().daemon().name("mutations").unstarted(task);
            working = made;
            return made;
        });
    }

    /** The memory that an input may take: a multiple of its length, and a constant. */
    public Mutations allocating(long times, long more) {
        multiple = times;
        constant = more;
        return this;
    }

    /** Counts what all threads allocate, for readers that have some of their own. */
    public Mutations ofAllThreads() {
        everyThread = true;
        return this;
    }

    /** An arena for a reader that wants one; what is allocated there counts. */
    public Arena arena() {
        Arena arena = Arena.ofConfined();
        return new Arena() {
            @Override
            public MemorySegment allocate(long bytes, long alignment) {
                offHeap += bytes;
                return arena.allocate(bytes, alignment);
            }

            @Override
            public MemorySegment.Scope scope() {
                return arena.scope();
            }

            @Override
            public void close() {
                arena.close();
            }
        };
    }

    /**
     * Has an input read.
     *
     * @param start what a refusal's message must begin with
     * @param reading reads it and checks what came out; on a thread of its own, always the same
     * @return whether it was read
     */
    public boolean feed(byte[] input, String start, Callable<?> reading) {
        int number = fed++;
        Future<Boolean> done = thread.submit(() -> measured(input.length, start, reading));
        try {
            boolean accepted = done.get(LIMIT_SECONDS, TimeUnit.SECONDS);
            read += accepted ? 1 : 0;
            return accepted;
        } catch (TimeoutException e) {
            var stuck = new AssertionError("stuck here");
            Thread where = working;
            if (where != null) {
                stuck.setStackTrace(where.getStackTrace());
            }
            throw failure(number, input, "not done after %d s".formatted(LIMIT_SECONDS), stuck);
        } catch (ExecutionException e) {
            throw failure(number, input, "" + e.getCause(), e.getCause());
        } catch (InterruptedException e) {
            throw new AssertionError(e);
        }
    }

    private AssertionError failure(int number, byte[] input, String what, @Nullable Throwable cause) {
        String dump = HexFormat.of().formatHex(input, 0, Math.min(input.length, LONGEST_DUMP));
        return new AssertionError(
                "%s: mutation %d, replay with -Dtests.seed=%d: %s; the input, of %d bytes: %s"
                        .formatted(reader, number, seed, what, input.length, dump),
                cause);
    }

    private boolean measured(int length, String start, Callable<?> reading) {
        long allowed = multiple * length + constant;
        long[] bytes = new long[1];
        boolean accepted = once(start, reading, bytes);
        if (bytes[0] > allowed) { // of classes, and what else is made but once
            once(start, reading, bytes);
        }
        assertThat(bytes[0]).as("bytes allocated for an input of %d", length).isLessThanOrEqualTo(allowed);
        largest = Math.max(largest, bytes[0]);
        return accepted;
    }

    private boolean once(String start, Callable<?> reading, long[] bytes) {
        offHeap = 0;
        @Nullable Exception thrown = null;
        long before = allocated();
        long begin = System.nanoTime();
        try {
            reading.call();
        } catch (Exception e) {
            thrown = e;
        }
        slowest = Math.max(slowest, System.nanoTime() - begin);
        bytes[0] = allocated() - before + offHeap;
        if (thrown == null) {
            return true;
        }
        if (!refusal.isInstance(thrown)) {
            throw new AssertionError("neither read nor refused: " + thrown, thrown);
        }
        assertThat(thrown.getMessage()).isNotBlank().startsWith(start).doesNotContainPattern("\\R");
        return false;
    }

    private long allocated() {
        return (everyThread ? Allocated.EVERYWHERE : Allocated.HERE).bytes();
    }

    /** What the JVM counts. By name: our module, which tests are part of, has no use for management otherwise. */
    private static final class Allocated {
        static final Allocated HERE = new Allocated("getCurrentThreadAllocatedBytes");
        static final Allocated EVERYWHERE = new Allocated("getTotalThreadAllocatedBytes");

        private final Object bean;
        private final Method method;

        private Allocated(String name) {
            try {
                bean = Class.forName("java.lang.management.ManagementFactory")
                        .getMethod("getThreadMXBean")
                        .invoke(null);
                method = Class.forName("com.sun.management.ThreadMXBean").getMethod(name);
            } catch (ReflectiveOperationException e) {
                throw new LinkageError(e.getMessage(), e);
            }
        }

        long bytes() {
            try {
                return (long) method.invoke(bean);
            } catch (ReflectiveOperationException e) {
                throw new LinkageError(e.getMessage(), e);
            }
        }
    }

    /** The share of inputs that was read must be within these bounds: or else they are too wild, or too tame. */
    public void end(double least, double most) {
        assertThat((double) read / fed).as("the share of inputs read").isBetween(least, most);
        SoakReport.row(
                SoakReport.Table.READERS,
                reader,
                "%,d".formatted(fed),
                "%,d".formatted(read),
                "%,d".formatted(fed - read),
                String.format(Locale.ROOT, "%.1f ms", slowest * 1e-6),
                String.format(Locale.ROOT, "%.1f KiB", largest / 1024.0),
                "%d x length + %d KiB".formatted(multiple, constant >> 10));
    }

    @Override
    public void close() {
        thread.shutdownNow();
    }

    /** A text with one to three things changed: cut off, or with pieces of its language where they do not belong. */
    public static String text(String original, List<String> pieces, Random random) {
        var text = new StringBuilder(original);
        for (int changes = 1 + random.nextInt(3); changes > 0; changes--) {
            int at = random.nextInt(text.length() + 1);
            String piece = pieces.get(random.nextInt(pieces.size()));
            switch (random.nextInt(5)) {
                case 0 -> text.setLength(at);
                case 1 -> text.insert(at, piece);
                case 2 -> text.replace(at, Math.min(text.length(), at + piece.length()), piece);
                case 3 -> text.delete(at, Math.min(text.length(), at + 1 + random.nextInt(12)));
                default -> text.insert(at, piece.repeat(1 + random.nextInt(2000)));
            }
        }
        return text.toString();
    }
}
