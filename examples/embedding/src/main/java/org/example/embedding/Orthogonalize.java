package org.example.embedding;

import java.util.Arrays;
import org.fedcomuon.device.Devices;
import org.fedcomuon.device.ElementType;
import org.fedcomuon.linalg.Exact;
import org.fedcomuon.linalg.ScaleRule;

/** Computes the nearest matrix with orthonormal rows, in ten lines. */
final class Orthogonalize {
    private Orthogonalize() {}

    public static void main(String[] arguments) {
        System.out.println(Arrays.toString(nearest(2, 3, 1, 2, 3, 4, 5, 6)));
    }

    static float[] nearest(int rows, int cols, float... matrix) {
        try (var device = Devices.open("cpu:0");
                var buffer = device.allocate("matrix", ElementType.FLOAT32, matrix.length);
                var plan = new Exact().plan(device, 1, rows, cols, ElementType.FLOAT32, ScaleRule.NONE)) {
            buffer.copyIn(0, matrix);
            plan.orthogonalize(buffer.batch(1, matrix.length), buffer.batch(1, matrix.length));
            return buffer.toFloats(0, matrix.length);
        }
    }
}
