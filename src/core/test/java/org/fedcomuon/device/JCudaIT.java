package org.fedcomuon.device;

import static java.util.stream.Collectors.joining;
import static org.assertj.core.api.Assertions.assertThat;

import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.fedcomuon.testing.Slow;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * JCuda's JNI libraries on the simulated libraries of CUDA 12, in processes of their own: the same calls give the same
 * bits as through Panama, and what is missing is said.
 */
@Slow
class JCudaIT {
    private static final Path TARGET = Path.of(System.getProperty("basedir", "."), "target");

    @TempDir
    private Path directory;

    @BeforeEach
    void openOne() {
        Simulated.open(1).close();
    }

    /** What a run of {@link JCudaProgram} printed. */
    private record Run(int status, List<String> output) {
        String first() {
            return output.stream()
                    .filter(line -> line.startsWith("library:"))
                    .findFirst()
                    .orElse("nothing in " + output);
        }

        /** What it said besides. */
        String words() {
            return output.stream().filter(line -> !results().contains(line)).collect(joining("\n"));
        }

        List<String> results() {
            return output.stream()
                    .filter(line -> line.matches("(gemm|syrk|symm|u|vt|s|FP32|TF32|BF16|together|exact) .*"))
                    .toList();
        }
    }

    private static List<String> path() {
        var path = new LinkedHashSet<String>();
        for (String property : List.of("java.class.path", "jdk.module.path", "surefire.test.class.path")) {
            path.addAll(Arrays.asList(System.getProperty(property, "").split(File.pathSeparator, -1)));
        }
        path.add(TARGET.resolve("classes").toString());
        path.add(TARGET.resolve("test-classes").toString());
        path.remove("");
        return List.copyOf(path);
    }

    private Run run(boolean natives, String libraryPath, String... properties)
            throws IOException, InterruptedException {
        List<String> path = path();
        Assumptions.assumeTrue(
                path.stream().anyMatch(JCudaIT::isNative), "JCuda's JNI libraries are not made for this platform");
        var command = new ArrayList<>(List.of(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "--enable-native-access=ALL-UNNAMED",
                "-Djava.io.tmpdir=" + directory, // where JCuda unpacks
                "-Dfedcomuon.native.path=" + Simulated.directory("")));
        for (String name : List.of("fedcomuon.native.library")) {
            if (System.getProperty(name) != null) {
                command.add("-D%s=%s".formatted(name, System.getProperty(name)));
            }
        }
        command.addAll(Arrays.asList(properties));
        command.add("-cp");
        command.add(String.join(
                File.pathSeparator,
                path.stream().filter(entry -> natives || !isNative(entry)).toList()));
        command.add(JCudaProgram.class.getName());
        Path log = directory.resolve("log");
        var builder = new ProcessBuilder(command).redirectErrorStream(true).redirectOutput(log.toFile());
        builder.environment().put("LD_LIBRARY_PATH", libraryPath);
        Process process = builder.start();
        assertThat(process.waitFor(10, TimeUnit.MINUTES)).isTrue();
        try (Stream<String> lines = Files.lines(log)) {
            return new Run(process.exitValue(), lines.toList());
        }
    }

    private static boolean isNative(String entry) {
        return entry.contains("-natives-");
    }

    @Test
    void resultsAreBitIdenticalToThoseThroughPanama() throws Exception {
        String libraries = "-Dfedcomuon.cudasim.libraries=" + Simulated.directory("cudasim12");
        Run panama = run(true, "", libraries, "-Dfedcomuon.cuda.binding=panama");
        Run jcuda = run(true, "", libraries, "-Dfedcomuon.cuda.binding=jcuda");
        assertThat(panama.first()).isEqualTo("library: cuBLAS 12.0.0, cuSOLVER 11.6.0");
        assertThat(jcuda.first()).isEqualTo("library: cuBLAS 12.0.0 through JCuda, cuSOLVER 11.6.0 through JCuda");
        // That cuSOLVER has no batched eigenvectors yet.
        assertThat(panama.output())
                .contains("path: gesvd, because cuSOLVER 11.6.0 has no batched eigenvectors, which CUDA 12.6 brings");
        assertThat(jcuda.words()).contains("path: gesvd, because cuSOLVER 11.6.0 through JCuda has no batched");
        assertThat(panama.results()).hasSizeGreaterThan(30).anyMatch(line -> line.startsWith("exact "));
        assertThat(jcuda.results()).isEqualTo(panama.results());
        assertThat(jcuda.status()).isZero();
    }

    @Test
    void whereTheLibrariesAreNotFoundOtherwiseItIsJCudaAndSaid() throws Exception {
        Path empty = Files.createDirectory(directory.resolve("empty"));
        Run run = run(true, Simulated.directory("cudasim12").toString(), "-Dfedcomuon.cudasim.libraries=" + empty);
        assertThat(run.first()).contains("through JCuda");
        assertThat(run.words())
                .contains(
                        "cudasim:1: cuBLAS is called through JCuda, because: no libcublas.so.13 or libcublas.so.12 in");
    }

    /** As an installation of CUDA 13 that lacks something: JCuda takes that of CUDA 12. */
    @Test
    void whereTheNewerLibraryCannotBeUsedItIsJCudaWithTheOlder() throws Exception {
        Path older = Simulated.directory("cudasim12");
        Path newer = Files.createDirectory(directory.resolve("newer"));
        for (String file : List.of("libcublas.so.13", "libcusolver.so.12")) {
            Files.copy(older.resolve("libcusolverMg.so.11"), newer.resolve(file)); // it has none of the functions
        }
        Run run = run(true, older.toString(), "-Dfedcomuon.cudasim.libraries=" + newer);
        assertThat(run.first()).contains("through JCuda");
        assertThat(run.words())
                .contains("cuBLAS is called through JCuda, because: " + newer.resolve("libcublas.so.13"))
                .contains("cuSOLVER is called through JCuda, because: " + newer.resolve("libcusolver.so.12"));
        Run strict = run(
                true, older.toString(), "-Dfedcomuon.cudasim.libraries=" + newer, "-Dfedcomuon.cuda.binding=panama");
        assertThat(strict.status()).isEqualTo(1);
        assertThat(strict.words()).contains("has no matrix library").doesNotContain("through JCuda");
    }

    @Test
    void whatIsMissingIsSaid() throws Exception {
        Path empty = Files.createDirectory(directory.resolve("empty"));
        Run withoutNatives = run(false, "", "-Dfedcomuon.cudasim.libraries=" + empty);
        assertThat(withoutNatives.status()).isEqualTo(1);
        assertThat(withoutNatives.words())
                .contains("DeviceException$Unsupported: cudasim:1 has no matrix library: cuBLAS: no libcublas.so.13")
                .contains("nor through JCuda: JCuda's JNI library does not load");
        Run withoutCublas = run(true, "", "-Dfedcomuon.cudasim.libraries=" + empty, "-Dfedcomuon.cuda.binding=jcuda");
        assertThat(withoutCublas.words())
                .contains(
                        "DeviceException$Unsupported: cudasim:1 has no matrix library: JCuda's JNI library does not load");
        Run unknown = run(true, "", "-Dfedcomuon.cuda.binding=none");
        assertThat(unknown.words()).contains("panama and jcuda are known");
    }
}
