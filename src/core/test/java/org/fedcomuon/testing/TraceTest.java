package org.fedcomuon.testing;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class TraceTest {
    @TempDir
    private Path directory;

    private Trace read(String... lines) throws IOException {
        return Trace.read(Files.write(directory.resolve("trace"), List.of(lines)));
    }

    @Test
    void launchesCopiesAndWaitsAreToldApartByDevice() throws IOException {
        Trace trace = read(
                "0 77 1 0 0 kernel fcm_k_ema, grid (1,1,1), block (256,1,1)",
                "0 77 2 0 0 copy of 40 bytes",
                "0 0 0 77 2 wait cudaStreamSynchronize",
                "1 88 1 0 0 kernel fcm_k_ema, grid (1,1,1), block (256,1,1)",
                "0 77 3 0 0 kernel fcm_k_emaciated, grid (1,1,1), block (256,1,1)",
                "0 77 4 88 1 wait",
                "0 77 5 0 0 staged copy of 4 bytes",
                "1 0 0 0 0 wait cudaMemcpyAsync of pageable memory");
        assertThat(trace.work()).hasSize(6);
        assertThat(trace.launches(0)).isEqualTo(Map.of("fcm_k_ema", 1L, "fcm_k_emaciated", 1L));
        assertThat(trace.launches(0, "fcm_k_ema"))
                .singleElement()
                .satisfies(work -> assertThat(work.position()).isEqualTo(1));
        assertThat(trace.copies(0)).extracting(Trace.Work::position).containsExactly(2L, 5L);
        assertThat(trace.copies(1)).isEmpty();
        assertThat(trace.waits(0)).containsExactly(new Trace.Wait(2, 0, "cudaStreamSynchronize"));
        assertThat(trace.waits(1)).containsExactly(new Trace.Wait(7, 1, "cudaMemcpyAsync of pageable memory"));
    }

    @Test
    void workRunsAfterItsStreamAndWhatThatWaitsFor() throws IOException {
        Trace trace = read(
                "0 77 1 0 0 copy of 4 bytes",
                "0 88 1 0 0 copy of 4 bytes",
                "0 88 2 77 1 cudaStreamWaitEvent",
                "0 77 2 0 0 copy of 4 bytes",
                "0 88 3 0 0 copy of 4 bytes");
        Trace.Work last = trace.work().getLast();
        assertThat(trace.work().stream().filter(last::runsAfter).map(Trace.Work::line))
                .containsExactly(0, 1, 2);
    }

    @Test
    void workOfNoStreamIsRefused() {
        assertThatThrownBy(() -> read("0 0 0 0 0 copy of 4 bytes"))
                .isInstanceOf(IOException.class)
                .hasMessageContaining("trace, line 1: work of no stream");
    }
}
