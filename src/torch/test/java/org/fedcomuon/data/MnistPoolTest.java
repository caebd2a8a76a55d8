package org.fedcomuon.data;

import static org.assertj.core.api.Assertions.assertThat;
import static org.fedcomuon.data.SmallMnist.histogram;

import java.io.IOException;
import java.io.OutputStream;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.zip.Deflater;
import java.util.zip.GZIPOutputStream;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledIf;
import org.junit.jupiter.api.io.TempDir;

/**
 * The packaged pool made anew from the whole set, where that is: {@code ./fedcomuon data get mnist} gets it. With
 * {@code -Dmnist.pool.out=DIR} the files are written there as well.
 */
@Tag("whole-mnist")
@EnabledIf(value = "wholeSetIsThere", disabledReason = "./fedcomuon data get mnist gets what this needs")
class MnistPoolTest {
    private static final int[] CHOSEN = chosen();

    private static LabelledDataset whole;

    static boolean wholeSetIsThere() {
        try {
            return Mnist.files(Mnist.defaultDirectory()).size() == 4;
        } catch (NoSuchFileException _) {
            return false;
        }
    }

    @BeforeAll
    static void load() throws IOException {
        whole = Mnist.load(Mnist.defaultDirectory());
    }

    /** The rule: a random part, in the order of the whole. */
    private static int[] chosen() {
        int[] chosen = Partition.imbalanced(60_000, List.of(Mnist.POOL), Mnist.POOL_SEED)
                .indices(0);
        Arrays.sort(chosen);
        return chosen;
    }

    @Test
    void theWholeSetIsThePublishedOne() {
        assertThat(whole.sha256()).isEqualTo(Mnist.PUBLISHED_SHA256);
        assertThat(whole.description()).isEqualTo("MNIST, the whole set: 60000 training and 10000 test images");
        assertThat(histogram(whole.train()))
                .containsExactly(5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949);
        assertThat(histogram(whole.test())).containsExactly(980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009);
    }

    @Test
    void thePoolIsWhatTheRuleGives() throws IOException {
        List<Path> files = Mnist.files(Mnist.defaultDirectory());
        IdxArray images = pick(read(files.get(0), 3));
        IdxArray labels = pick(read(files.get(1), 1));
        List<IdxArray> pool = List.of(images, labels, read(files.get(2), 3), read(files.get(3), 1));
        String out = System.getProperty("mnist.pool.out");
        if (out != null) {
            for (int i = 0; i < pool.size(); i++) {
                write(Path.of(out, Mnist.FILES.get(i) + ".gz"), pool.get(i));
            }
        }
        var digest = new ContentDigest();
        pool.forEach(digest::update);
        assertThat(digest.hex()).isEqualTo(Mnist.POOL_SHA256);
        assertThat(Mnist.bundled().sha256()).isEqualTo(Mnist.POOL_SHA256);
    }

    /** The constants of the download, with a package made of the same files. */
    @Test
    void theWholeSetPassesTheChecksOfTheDownload(@TempDir Path directory) throws Exception {
        var files = new ArrayList<byte[]>();
        for (Path file : Mnist.files(Mnist.defaultDirectory())) {
            files.add(Files.readAllBytes(file));
        }
        var download =
                new MnistDownload(to -> SmallMnist.pack(to.resolve("package.tgz"), files), MnistDownload.PUBLISHED);

        assertThat(download.get(directory, _ -> {})).isTrue();
        assertThat(download.get(directory, _ -> {})).isFalse();
        assertThat(Mnist.load(directory).sha256()).isEqualTo(Mnist.PUBLISHED_SHA256);
    }

    private static IdxArray read(Path file, int rank) throws IOException {
        return Idx.read(file, rank, _ -> Optional.empty());
    }

    private static IdxArray pick(IdxArray all) {
        List<Integer> shape = new ArrayList<>(all.shape());
        long size = all.data().byteSize() / shape.getFirst();
        shape.set(0, CHOSEN.length);
        MemorySegment picked = MemorySegment.ofArray(new byte[(int) (CHOSEN.length * size)]);
        for (int i = 0; i < CHOSEN.length; i++) {
            MemorySegment.copy(all.data(), CHOSEN[i] * size, picked, i * size, size);
        }
        return new IdxArray(shape, picked);
    }

    private static void write(Path file, IdxArray array) throws IOException {
        try (OutputStream out = new GZIPOutputStream(Files.newOutputStream(file)) {
            {
                def.setLevel(Deflater.BEST_COMPRESSION);
            }
        }) {
            out.write(array.header());
            out.write(array.data().toArray(ValueLayout.JAVA_BYTE));
        }
    }
}
