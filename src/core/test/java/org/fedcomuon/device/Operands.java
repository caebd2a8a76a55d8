package org.fedcomuon.device;

import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.stream.IntStream;
import java.util.stream.LongStream;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;

/**
 * Random operands for tests, at odd offsets and strides so that nothing is aligned by luck. Closes what it has made.
 */
final class Operands implements AutoCloseable {
    private final Device device;
    private final Random random;
    private final List<Buffer> made = new ArrayList<>();

    Operands(Device device, long seed) {
        this.device = device;
        this.random = new Random(seed);
    }

    int choose(int... from) {
        return from[random.nextInt(from.length)];
    }

    double fraction() {
        return random.nextDouble();
    }

    double normal() {
        return random.nextGaussian();
    }

    long[] seeds(int count) {
        return random.longs(count).toArray();
    }

    Buffer allocate(String label, ElementType type, long length) {
        Buffer buffer = device.allocate(label, type, length);
        made.add(buffer);
        return buffer;
    }

    Buffer floats(String label, long length) {
        return allocate(label, ElementType.FLOAT32, length);
    }

    Buffer doubles(String label, long length) {
        return allocate(label, ElementType.FLOAT64, length);
    }

    /** One vector of a type that no operation on numbers takes, somewhere inside a buffer that is larger than it. */
    Batch vector(String label, ElementType type, long length) {
        long offset = random.nextInt(5);
        return new Batch(allocate(label, type, offset + length + random.nextInt(3)), offset, 1, length, length);
    }

    /** A batch of normal numbers somewhere inside a buffer that is larger than it. */
    Batch normal(String label, int clients, int length) {
        long offset = random.nextInt(5);
        long stride = (long) length + random.nextInt(4);
        Buffer buffer = floats(label, offset + clients * stride + random.nextInt(3));
        var values = new float[(int) buffer.length()];
        for (int i = 0; i < values.length; i++) {
            values[i] = (float) random.nextGaussian();
        }
        buffer.copyIn(0, values);
        return new Batch(buffer, offset, clients, length, stride);
    }

    /** A matrix of normal numbers, at an odd place, its rows {@code stride} apart. */
    Matrix matrix(ElementType type, int rows, int cols, int stride) {
        Buffer buffer = allocate(rows + " x " + cols, type, 2 + (long) rows * stride);
        var values = new double[(int) buffer.length()];
        var floats = new float[values.length];
        for (int i = 0; i < values.length; i++) {
            values[i] = normal();
            floats[i] = (float) values[i];
        }
        if (type == ElementType.FLOAT32) {
            buffer.copyIn(0, floats);
        } else {
            buffer.copyIn(0, values);
        }
        return new Matrix(buffer, 2, rows, cols, stride);
    }

    /** What a matrix holds, row after row. */
    static double[] values(Matrix matrix) {
        double[] all = matrix.buffer().toDoubles(0, (int) matrix.buffer().length());
        var result = new double[matrix.rows() * matrix.cols()];
        for (int i = 0; i < matrix.rows(); i++) {
            for (int j = 0; j < matrix.cols(); j++) {
                result[i * matrix.cols() + j] = all[(int) matrix.offset() + i * matrix.stride() + j];
            }
        }
        return result;
    }

    static double[] client(Batch batch, int k) {
        return batch.buffer().toDoubles(batch.offset() + k * batch.stride(), (int) batch.length());
    }

    static double[][] clients(Batch batch) {
        var result = new double[(int) batch.clients()][];
        for (int k = 0; k < result.length; k++) {
            result[k] = client(batch, k);
        }
        return result;
    }

    /** All that is in the buffers it has made, in the order of their making. */
    double[][] contents() {
        return made.stream().map(Operands::contents).toArray(double[][]::new);
    }

    /** All bits of integers too, in two numbers each. */
    private static double[] contents(Buffer buffer) {
        int length = (int) buffer.length();
        return switch (buffer.type()) {
            case FLOAT32, FLOAT64 -> buffer.toDoubles(0, length);
            case UINT8 -> {
                byte[] bytes = buffer.toBytes(0, length);
                yield IntStream.range(0, length)
                        .mapToDouble(i -> bytes[i] & 0xff)
                        .toArray();
            }
            case INT64 ->
                Arrays.stream(buffer.toLongs(0, length))
                        .flatMap(value -> LongStream.of(value >> 32, value & 0xffffffffL))
                        .mapToDouble(half -> half)
                        .toArray();
        };
    }

    @Override
    public void close() {
        made.reversed().forEach(Buffer::close);
    }

    /** The operands of a call do not fit together, and the message has this word. */
    static void assertRefused(ThrowingCallable call, String word) {
        assertThatThrownBy(call)
                .isInstanceOf(DeviceException.InvalidOperand.class)
                .hasMessageContaining(word);
    }
}
