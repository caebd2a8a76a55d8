package org.fedcomuon.observe;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.time.InstantSource;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.NavigableMap;
import java.util.TreeMap;
import org.fedcomuon.federation.Federation;
import org.fedcomuon.federation.Listener;
import org.fedcomuon.federation.RunFiles;
import org.fedcomuon.method.FedAvg;
import org.fedcomuon.method.Schedule;
import org.fedcomuon.problem.MatrixQuadratics;
import org.fedcomuon.problem.Problem;
import org.fedcomuon.problem.Risk;
import org.fedcomuon.testing.EventFiles;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.tensorflow.framework.DataType;
import org.tensorflow.framework.Summary;
import org.tensorflow.util.Event;

/** What TensorBoard reads of a run is what the run found, once for each step. */
class TensorBoardEventsIT {
    private static final Problem PROBLEM = new MatrixQuadratics(4, 3, 4, 1, 0.1, Risk.mean(), 1);

    @TempDir
    private Path temporary;

    /** Evaluates every five of twenty steps, with a checkpoint every ten. */
    private Federation.Builder run(Path directory) {
        return Federation.of(PROBLEM, new FedAvg(Schedule.constant(0.1)))
                .iterations(20)
                .tau(5)
                .evaluate(
                        5,
                        (step, w) -> new LinkedHashMap<>(
                                Map.of("weight", (double) w.values().get(0))))
                .checkpoints(directory.resolve("checkpoints"), 2);
    }

    private NavigableMap<Long, Float> weights(Path directory) throws Exception {
        Map<String, NavigableMap<Long, Float>> scalars = EventFiles.scalars(directory.resolve("tensorboard"));
        assertThat(scalars).containsOnlyKeys("weight");
        return scalars.get("weight");
    }

    private Path wholeRun() throws Exception {
        Path directory = temporary.resolve("whole");
        Map<String, String> settings = Map.of("tau", "5");
        // @start region="tensorboard"
        var events = new TensorBoardEvents(directory.resolve("tensorboard"), settings);
        run(directory).listener(events).build().run();
        // @end
        return directory;
    }

    @Test
    void everyMetricOfEveryEvaluationIsAScalarAtItsStep() throws Exception {
        var found = new TreeMap<Long, Float>();
        var metrics = new LinkedHashMap<String, Double>();
        Path directory = temporary.resolve("metrics");
        Instant before = Instant.now();
        run(directory)
                .evaluate(10, (step, w) -> {
                    found.put(step, w.values().get(0));
                    metrics.put("test_loss", (double) w.values().get(0));
                    metrics.put("größter/Fehler", step == 10 ? Double.NaN : Double.NEGATIVE_INFINITY);
                    return metrics;
                })
                .listener(new TensorBoardEvents(directory, Map.of()))
                .build()
                .run();
        Map<String, NavigableMap<Long, Float>> scalars = EventFiles.scalars(directory);
        assertThat(scalars).containsOnlyKeys("test_loss", "größter/Fehler");
        assertThat(scalars.get("test_loss")).isEqualTo(found).containsOnlyKeys(0L, 10L, 20L);
        assertThat(scalars.get("größter/Fehler").values())
                .containsExactly(Float.NEGATIVE_INFINITY, Float.NaN, Float.NEGATIVE_INFINITY);
        List<Event> events = EventFiles.events(EventFiles.files(directory).getFirst());
        assertThat(events)
                .extracting(Event::getWallTime)
                .isSorted()
                .allSatisfy(time -> assertThat(time)
                        .isBetween(
                                before.toEpochMilli() * 1e-3,
                                Instant.now().plusMillis(1).toEpochMilli() * 1e-3));
    }

    /** Against bytes that TensorFlow has written: the version, at a time that its file has. */
    @Test
    void theFileBeginsAsTensorFlowsOwn() throws Exception {
        String own = "1800000000000000a37f4b22" + "0900008038" + "99d6d7411a0d627261696e2e4576656e743a32" + "124b36ab";
        byte[] time = HexFormat.of().parseHex("0000803899d6d741");
        double seconds = ByteBuffer.wrap(time).order(ByteOrder.LITTLE_ENDIAN).getDouble();
        InstantSource clock = InstantSource.fixed(Instant.ofEpochMilli(Math.round(seconds * 1e3)));
        run(temporary)
                .listener(new TensorBoardEvents(temporary, Map.of(), clock))
                .build()
                .run();
        byte[] written = Files.readAllBytes(EventFiles.files(temporary).getFirst());
        assertThat(HexFormat.of().formatHex(Arrays.copyOf(written, own.length() / 2)))
                .isEqualTo(own);
    }

    @Test
    void theSettingsAreATableForTheTextPlugin() throws Exception {
        var settings = new LinkedHashMap<String, String>();
        settings.put("eta", "cosine(0.05, 0.001)");
        settings.put("layers", "[a_b | <c> & `d`]\nnext");
        run(temporary)
                .listener(new TensorBoardEvents(temporary, settings))
                .build()
                .run();
        Summary.Value config = EventFiles.events(EventFiles.files(temporary).getFirst()).stream()
                .flatMap(event -> event.getSummary().getValueList().stream())
                .findFirst()
                .orElseThrow();
        assertThat(config.getTag()).isEqualTo("config");
        assertThat(config.getMetadata().getPluginData().getPluginName()).isEqualTo("text");
        assertThat(config.getTensor().getDtype()).isEqualTo(DataType.DT_STRING);
        assertThat(config.getTensor().getTensorShape().getDimCount()).isZero();
        assertThat(config.getTensor().getStringValList())
                .singleElement()
                .satisfies(text -> assertThat(text.toStringUtf8()).isEqualTo("""
                        | setting | value |
                        |---|---|
                        | eta | cosine(0.05, 0.001) |
                        | layers | \\[a\\_b \\| &lt;c> &amp; \\`d\\`\\] next |
                        """));
    }

    /** It fails at step 17, when step 15 has been evaluated and the checkpoint is of step 10. */
    @Test
    void aRunThatFailedAndIsResumedHasEveryStepOnce() throws Exception {
        Path directory = temporary.resolve("failed");
        Path tensorBoard = directory.resolve("tensorboard");
        Listener crash = new Listener() {
            @Override
            public void onStep(long step) {
                if (step == 17) {
                    throw new IllegalStateException("crash");
                }
            }
        };
        assertThatThrownBy(() -> run(directory)
                        .listener(new TensorBoardEvents(tensorBoard, Map.of("part", "first")))
                        .listener(crash)
                        .build()
                        .run())
                .hasMessageContaining("crash");
        assertThat(weights(directory)).containsOnlyKeys(0L, 5L, 10L, 15L);
        Path first = EventFiles.files(tensorBoard).getFirst();
        byte[] before = Files.readAllBytes(first);
        run(directory)
                .listener(new TensorBoardEvents(tensorBoard, Map.of("part", "second")))
                .resume(directory.resolve("checkpoints"))
                .build()
                .run();
        assertThat(weights(directory)).isEqualTo(weights(wholeRun())).containsOnlyKeys(0L, 5L, 10L, 15L, 20L);
        assertThat(EventFiles.files(tensorBoard)).hasSize(2).first().isEqualTo(first);
        assertThat(first).hasBinaryContent(before); // a reader may have it open
    }

    /** Of a clock that has been set back, or of two parts in one second. */
    @Test
    void aLaterPartIsReadAfterAnEarlierOne() throws Exception {
        Instant now = Instant.parse("2026-01-01T00:00:00Z");
        List<Instant> starts = List.of(now, now, now.minusSeconds(1000));
        for (int part = 0; part < starts.size(); part++) {
            run(temporary.resolve("part" + part))
                    .listener(new TensorBoardEvents(temporary, Map.of(), InstantSource.fixed(starts.get(part))))
                    .build()
                    .run();
        }
        List<Path> files = EventFiles.files(temporary);
        assertThat(files)
                .extracting(file -> file.getFileName().toString().substring(20, 30))
                .containsExactly("1767225600", "1767225601", "1767225602");
        assertThat(EventFiles.events(files.getLast()).getLast().getWallTime())
                .isEqualTo((double) (now.getEpochSecond() - 1000));
        assertThat(EventFiles.scalars(temporary).get("weight")).hasSize(5); // each began anew
    }

    @Test
    void aDirectoryThatCannotBeMadeEndsTheRunWithItsName() throws Exception {
        Path file = Files.createFile(temporary.resolve("taken"));
        assertThatThrownBy(() -> run(temporary.resolve("run"))
                        .listener(new TensorBoardEvents(file, Map.of()))
                        .build()
                        .run())
                .hasMessageContaining(file.toString());
        assertThat(new RunFiles(temporary.resolve("run")).checkpoints()).doesNotExist();
    }
}
