package org.fedcomuon.federation;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.LinkedHashMap;
import java.util.Map;
import org.junit.jupiter.api.Test;

/** Tests that the table has the columns of the evaluations in their order, and the quotes of RFC 4180. */
class MetricsTableTest {
    private static final String COSTS =
            "seconds,step_seconds,gradient_seconds,orthogonalize_seconds,exchange_seconds,evaluate_seconds";

    private final MetricsTable table = new MetricsTable();

    /** @param pairs names and values */
    private void add(Object... pairs) {
        var values = new LinkedHashMap<String, Object>();
        for (int i = 0; i < pairs.length; i += 2) {
            values.put((String) pairs[i], pairs[i + 1]);
        }
        table.add(values);
    }

    @Test
    void columnsDoNotMoveWhenTheirFirstValueComes() {
        add("step", 0L, "round", 0L, "loss", 2.5, "seconds", 0.25, "communicated_bytes", 0L, "evaluations", 0L);
        String header = "step,round,loss," + COSTS + ",optimizer_share,communicated_bytes,evaluations\r\n";
        assertThat(table.csv()).isEqualTo(header + "0,0,2.5,0.25,,,,,,,0,0\r\n");
        add("step", 5L, "round", 1L, "loss", Double.NaN, "seconds", 1e-7, "optimizer_share", 0.5);
        assertThat(table.csv()).isEqualTo(header + "0,0,2.5,0.25,,,,,,,0,0\r\n" + "5,1,NaN,1.0E-7,,,,,,0.5,,\r\n");
    }

    @Test
    void aMetricThatComesLaterIsEmptyBefore() {
        add("step", 0L, "round", 0L, "a", 1.0, "c", 3.0);
        add("step", 1L, "round", 0L, "a", 1.5, "b", 2.5, "c", 3.5);
        assertThat(table.csv().lines())
                .containsExactly(
                        "step,round,a,b,c," + COSTS + ",optimizer_share,communicated_bytes",
                        "0,0,1.0,,3.0,,,,,,,,",
                        "1,0,1.5,2.5,3.5,,,,,,,,");
    }

    @Test
    void namesWithCommasQuotesAndLinesAreQuoted() {
        table.add(Map.of("say \"a,\nb\"", "x\r"));
        assertThat(table.csv()).startsWith("\"say \"\"a,\nb\"\"\",step,").endsWith("\r\n\"x\r\",,,,,,,,,,\r\n");
    }
}
