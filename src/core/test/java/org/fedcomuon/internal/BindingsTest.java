package org.fedcomuon.internal;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.lang.reflect.Method;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.util.HexFormat;
import java.util.Map;
import java.util.TreeSet;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.fedcomuon.internal.bindings.fedcomuon.FedComuonNative;
import org.fedcomuon.internal.bindings.openblas.OpenBlasNative;
import org.fedcomuon.testing.Repository;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** The committed bindings belong to the headers as they are now, and the libraries export what they name. */
class BindingsTest {
    private static final Path ROOT = Repository.root();

    /** A name before an opening parenthesis, after comments and preprocessor lines are gone. */
    private static final Pattern FUNCTION = Pattern.compile("\\b((?:fcm|cblas|LAPACKE|openblas)_\\w+)\\s*\\(");

    record Header(String file, Class<?> bindings) {}

    static Stream<Header> headers() {
        return Stream.of(
                new Header("native/include/fedcomuon.h", FedComuonNative.class),
                new Header("native/include/vendor/openblas.h", OpenBlasNative.class));
    }

    @ParameterizedTest
    @MethodSource("headers")
    void everyFunctionHasABindingAndASymbol(Header header) throws Exception {
        assertThat(NativeLibrary.load()).isInstanceOf(NativeLibrary.Loaded.class);
        assertThat(OpenBlasLibrary.load().reason()).isEmpty();
        String declarations = Files.readString(ROOT.resolve(header.file()))
                .replaceAll("(?s)/\\*.*?\\*/", "")
                .replaceAll("(?m)^\\s*#.*$", "");
        var functions = new TreeSet<String>();
        FUNCTION.matcher(declarations).results().forEach(match -> functions.add(match.group(1)));
        assertThat(functions).hasSizeGreaterThan(10);
        for (String function : functions) {
            Method address = header.bindings().getMethod(function + "$address"); // throws when there is no binding
            assertThat(address.invoke(null)).as(function).isInstanceOf(MemorySegment.class); // or no symbol
        }
    }

    @ParameterizedTest
    @MethodSource("headers")
    void theBindingsWereMadeFromThisHeader(Header header) throws Exception {
        Map<String, String> made = recorded();
        String name = "../" + header.file();
        byte[] content = Files.readAllBytes(ROOT.resolve(header.file()));
        String now =
                HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(content));
        assertThat(made).as("run bindings/generate.sh after changing a header").containsEntry(name, now);
    }

    private static Map<String, String> recorded() throws IOException {
        try (Stream<String> lines = Files.lines(ROOT.resolve("bindings/SOURCES.sha256"))) {
            return lines.map(line -> line.split("\\s+", 2))
                    .collect(java.util.stream.Collectors.toMap(parts -> parts[1], parts -> parts[0]));
        }
    }
}
