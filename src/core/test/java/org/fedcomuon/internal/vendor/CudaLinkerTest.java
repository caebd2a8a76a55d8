package org.fedcomuon.internal.vendor;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.TreeSet;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.fedcomuon.device.Simulated;
import org.fedcomuon.internal.bindings.cublas.CublasNative;
import org.fedcomuon.internal.bindings.cusolver.CusolverNative;
import org.fedcomuon.internal.bindings.nccl.NcclNative;
import org.fedcomuon.testing.Repository;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.MethodSource;

/** Libraries that are not there are an answer in a line, and never a crash. */
class CudaLinkerTest {
    @TempDir
    private Path directory;

    @ParameterizedTest
    @EnumSource(CudaLinker.Vendor.class)
    void anEmptyDirectoryIsNamed(CudaLinker.Vendor vendor) {
        assertThat(CudaLinker.in(directory).open(vendor))
                .isInstanceOfSatisfying(
                        CudaLinker.Missing.class,
                        missing -> assertThat(missing.reason())
                                .startsWith("no lib")
                                .contains(" in " + directory)
                                .doesNotContain("\n"));
    }

    @Test
    void whatIsNoLibraryIsExplainedByTheLinker() throws IOException {
        Files.writeString(directory.resolve("libcublas.so.12"), "not a library");
        assertThat(CudaLinker.in(directory).open(CudaLinker.Vendor.CUBLAS))
                .isInstanceOfSatisfying(
                        CudaLinker.Missing.class,
                        missing -> assertThat(missing.reason())
                                .contains("libcublas.so.12")
                                .contains("too short"));
    }

    /** A header of ours, what was generated from it, and the library. */
    record Header(String name, Class<?> bindings, CudaLinker.Vendor vendor) {}

    static Stream<Header> headers() {
        return Stream.of(
                new Header("cublas", CublasNative.class, CudaLinker.Vendor.CUBLAS),
                new Header("cusolver", CusolverNative.class, CudaLinker.Vendor.CUSOLVER),
                new Header("nccl", NcclNative.class, CudaLinker.Vendor.NCCL));
    }

    @ParameterizedTest
    @MethodSource("headers")
    void everyFunctionOfAHeaderIsBoundAndSimulated(Header header) throws IOException {
        Path file = Repository.root().resolve("native/include/vendor").resolve(header.name() + ".h");
        String declarations =
                Files.readString(file).replaceAll("(?s)/\\*.*?\\*/", "").replaceAll("(?m)^\\s*#.*$", "");
        var functions = new TreeSet<String>();
        Pattern.compile("\\b((?:cublas|cusolver|nccl)\\w+)\\s*\\(")
                .matcher(declarations)
                .results()
                .forEach(match -> functions.add(match.group(1)));
        assertThat(functions).hasSizeGreaterThan(8);
        var library = (CudaLinker.Opened)
                CudaLinker.in(Simulated.directory("cudasim")).open(header.vendor());
        for (String function : functions) {
            assertThat(library.find(header.bindings(), function)).as(function).isPresent();
        }
    }
}
