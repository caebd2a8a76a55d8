package org.fedcomuon.bench;

import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.io.PrintWriter;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.time.LocalDate;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Optional;
import java.util.stream.Stream;
import org.fedcomuon.cli.Json;
import org.fedcomuon.cli.UsageException;
import org.fedcomuon.cli.WholeFile;
import tools.jackson.core.JacksonException;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

/**
 * {@code fedcomuon bench kernels}: profiles every CUDA kernel without a GPU. The work is done by the program
 * {@code kernel_profile}, which the launcher builds where there is nvcc; its PTX is beside it.
 */
final class KernelsSuite {
    private static final String PROGRAM = "kernel_profile";
    private static final String SUITE = "kernels";

    /** Whose PTX is profiled: Ampere and Ada run what it is compiled to. */
    private static final String ARCHITECTURE = "80";

    private KernelsSuite() {}

    /**
     * Runs the program that was built, with its progress on {@code err}, prints the tables and returns the profiles.
     */
    static List<KernelProfile> run(PrintWriter out, PrintWriter err, Optional<Path> json) {
        return run(program(System.getProperty("fedcomuon.native.path", "")), out, err, json);
    }

    static List<KernelProfile> run(Path program, PrintWriter out, PrintWriter err, Optional<Path> json) {
        List<JsonNode> lines = profile(program, err);
        List<KernelProfile> profiles = profiles(lines);
        out.print(KernelTables.of(Optional.empty(), profiles));
        out.flush();
        json.ifPresent(file -> write(file, lines));
        return profiles;
    }

    /** Reads files that {@link #run} wrote. */
    static List<List<KernelProfile>> read(List<Path> files) {
        if (files.size() > 2) {
            throw new UsageException("--table: bench kernels takes one file, or two to compare");
        }
        return files.stream().map(KernelsSuite::read).toList();
    }

    /** Returns the tables of one run, or of two, the first of which is from before a change. */
    static String table(List<List<KernelProfile>> runs) {
        Optional<List<KernelProfile>> before = runs.size() == 2 ? Optional.of(runs.getFirst()) : Optional.empty();
        return KernelTables.of(before, runs.getLast());
    }

    /** Returns the program in one of the directories of a path. */
    static Path program(String path) {
        return Stream.of(path.split(File.pathSeparator, -1))
                .filter(directory -> !directory.isEmpty())
                .map(directory -> Path.of(directory, PROGRAM))
                .filter(Files::isExecutable)
                .findFirst()
                .orElseThrow(() -> new UsageException(
                        "bench kernels: there is no %s in %s; building it requires nvcc".formatted(PROGRAM, path)));
    }

    private static List<JsonNode> profile(Path program, PrintWriter err) {
        try {
            Path lines = Files.createTempFile("kernels", ".jsonl");
            try {
                Path ptx = program.resolveSibling("ptx").resolve(ARCHITECTURE);
                Process process = new ProcessBuilder(program.toString(), "write", ptx.toString(), lines.toString())
                        .redirectErrorStream(true)
                        .start();
                String last = "";
                try (BufferedReader reader = process.inputReader(StandardCharsets.UTF_8)) {
                    for (String line = reader.readLine(); line != null; line = reader.readLine()) {
                        err.println(line);
                        err.flush();
                        last = line;
                    }
                }
                int status = process.waitFor();
                if (status != 0) {
                    throw new IllegalStateException(
                            "%s ended with exit code %d: %s".formatted(program.getFileName(), status, last));
                }
                JsonMapper mapper = JsonMapper.shared();
                return Files.readAllLines(lines).stream().map(mapper::readTree).toList();
            } finally {
                Files.deleteIfExists(lines);
            }
        } catch (IOException e) {
            throw new IllegalStateException("%s cannot be run: %s".formatted(program, e.getMessage()), e);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new IllegalStateException("interrupted", e);
        }
    }

    private static void write(Path file, List<JsonNode> lines) {
        var all = new LinkedHashMap<String, Object>();
        all.put("date", LocalDate.now(ZoneOffset.UTC).toString());
        all.put("suite", SUITE);
        all.put("measured", false);
        all.put("profiles", lines);
        WholeFile.write("--json", file, Json.pretty(all));
    }

    private static List<KernelProfile> read(Path file) {
        try {
            JsonNode json = JsonMapper.shared().readTree(Files.readString(file));
            if (!json.path("suite").asString("").equals(SUITE)) {
                throw new UsageException("--table %s: not written by bench kernels --json".formatted(file));
            }
            var lines = new ArrayList<JsonNode>();
            json.required("profiles").forEach(lines::add);
            return profiles(lines);
        } catch (NoSuchFileException e) {
            throw new UsageException("--table %s: no such file".formatted(file));
        } catch (IOException | JacksonException | IllegalArgumentException e) {
            throw new UsageException("--table %s: not written by bench kernels --json".formatted(file));
        }
    }

    private static List<KernelProfile> profiles(List<JsonNode> lines) {
        return lines.stream().map(KernelProfile::of).toList();
    }
}
