package org.fedcomuon.data;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.fedcomuon.testing.NumpyFiles;

/** Files as NumPy writes them. */
final class SmallArrays {
    private SmallArrays() {}

    /** An NPY file with the given values in the order in which they are given. */
    static byte[] npy(String descr, boolean fortran, String shape, double... values) {
        return NumpyFiles.npy(descr, fortran, shape, values);
    }

    static Path write(Path directory, String name, String descr, String shape, double... values) throws IOException {
        return Files.write(directory.resolve(name), npy(descr, false, shape, values));
    }

    static float[] valuesOf(ExampleSet set, int example) {
        var values = new float[set.size()];
        set.copyTo(example, values, 0);
        return values;
    }

    static int[] labelsOf(ExampleSet set) {
        var labels = new int[set.count()];
        for (int i = 0; i < labels.length; i++) {
            labels[i] = set.label(i);
        }
        return labels;
    }
}
