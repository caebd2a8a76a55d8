package org.fedcomuon.bench;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.time.LocalDate;
import java.time.ZoneOffset;
import java.time.format.DateTimeParseException;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.fedcomuon.cli.Json;
import org.fedcomuon.cli.UsageException;
import org.fedcomuon.cli.WholeFile;
import tools.jackson.core.JacksonException;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

/**
 * The file that {@code bench --json} writes and {@code bench --table} reads: the date, and every row of every suite.
 */
final class BenchFile {
    private BenchFile() {}

    static void write(Path file, List<BenchReport> reports) {
        var suites = new ArrayList<Map<String, Object>>();
        for (BenchReport report : reports) {
            var rows = new ArrayList<Map<String, Object>>();
            for (BenchReport.Row row : report.rows()) {
                var entry = new LinkedHashMap<String, Object>();
                entry.put("name", row.name());
                entry.put("ratio", row.ratio());
                entry.put("seconds", row.seconds());
                entry.put("spread", row.spread());
                if (row.bytes() > 0) {
                    entry.put("bytes", row.bytes());
                    entry.put("gigabytes_per_second", row.gigabytesPerSecond());
                }
                if (!row.parts().isEmpty()) {
                    entry.put("parts", row.parts());
                }
                if (!row.aims().isEmpty()) {
                    entry.put("aims", Judgement.json(row.aims()));
                }
                rows.add(entry);
            }
            var entry = new LinkedHashMap<String, Object>();
            entry.put("suite", report.suite());
            entry.put("device", report.device());
            entry.put("explanation", report.explanation());
            entry.put("rows", rows);
            entry.put("notes", report.notes());
            suites.add(entry);
        }
        var all = new LinkedHashMap<String, Object>();
        all.put("date", LocalDate.now(ZoneOffset.UTC).toString());
        all.put("suites", suites);
        WholeFile.write("--json", file, Json.pretty(all));
    }

    static BenchTable.Run read(Path file) {
        try {
            JsonNode json = JsonMapper.shared().readTree(Files.readString(file));
            var reports = new ArrayList<BenchReport>();
            for (JsonNode suite : json.required("suites")) {
                var rows = new ArrayList<BenchReport.Row>();
                for (JsonNode row : suite.required("rows")) {
                    rows.add(new BenchReport.Row(
                            row.required("name").stringValue(),
                            row.required("seconds").doubleValue(),
                            row.required("spread").doubleValue(),
                            row.path("bytes").asLong(0),
                            row.required("ratio").doubleValue(),
                            Map.of(), // no table has parts
                            Judgement.read(row.path("aims"))));
                }
                reports.add(new BenchReport(
                        suite.required("suite").stringValue(),
                        suite.required("device").stringValue(),
                        suite.required("explanation").stringValue(),
                        rows));
            }
            return new BenchTable.Run(LocalDate.parse(json.required("date").stringValue()), reports);
        } catch (NoSuchFileException e) {
            throw new UsageException("--table %s: no such file".formatted(file));
        } catch (IOException | JacksonException | DateTimeParseException | IllegalArgumentException e) {
            throw new UsageException("--table %s: not written by bench --json".formatted(file));
        }
    }

    static void replaceTable(Path file, String table, Optional<String> suite) {
        try {
            WholeFile.write("--into", file, BenchTable.into(Files.readString(file), table, suite));
        } catch (NoSuchFileException e) {
            throw new UsageException("--into %s: no such file".formatted(file));
        } catch (IOException e) {
            throw new UsageException("--into %s: %s".formatted(file, e.getMessage()));
        } catch (IllegalArgumentException e) {
            throw new UsageException("--into %s: %s".formatted(file, e.getMessage()));
        }
    }
}
