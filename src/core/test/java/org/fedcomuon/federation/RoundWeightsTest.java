package org.fedcomuon.federation;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.List;
import org.fedcomuon.device.MeanWeights;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class RoundWeightsTest {
    private static final List<Double> BASE = List.of(5.0, 0.1, 1.0, 2.0, 3.0);

    @Test
    void withoutACohortAllTakePart() {
        var round = new RoundWeights(BASE);
        round.drop(List.of(List.of(), List.of()));
        assertThat(round.terms()).isEqualTo(5);
        assertThat(round.participants()).isEqualTo(5);
        assertThat(round.share()).isEqualTo(1);
        assertThat(round.total()).isEqualTo(11.1 / 8);
    }

    @Test
    void faultsChangeTheTotalAndNotTheTerms() {
        var round = new RoundWeights(BASE);
        round.begin(new int[] {1, 2, 4});
        round.drop(List.of(List.of(4), List.of()));
        assertThat(round.terms()).isEqualTo(3);
        assertThat(round.participants()).isEqualTo(2);
        assertThat(round.total()).isEqualTo(1.1);
        assertThat(round.share()).isEqualTo(1.1 / 11.1);
        round.drop(List.of(List.of(), List.of()));
        assertThat(round.total()).isEqualTo((0.1 + 1 + 3) / 4);
        assertThatThrownBy(() -> round.drop(List.of(List.of(1, 2), List.of(4))))
                .isInstanceOf(Federation.NoClientsException.class);
    }

    /** Or the mean of a device that has all clients, which scales by itself, would differ. */
    @ParameterizedTest
    @ValueSource(doubles = {1, 0.3, 4, 5, 1e-3, 1e9, 0x1p-1060, 3e-320, Double.MIN_VALUE, Double.MAX_VALUE})
    void theScaleIsThatOfADevice(double greatest) {
        double[] weights = {greatest, greatest / 4, 0, greatest / 7};
        var round = new RoundWeights(List.of(greatest, greatest / 4, 1.0, greatest / 7));
        round.begin(new int[] {0, 1, 3});
        round.drop(List.of());
        double[] scaled = round.scaled(weights);
        assertThat(scaled).isEqualTo(MeanWeights.scaled(weights));
        assertThat(scaled[0]).isGreaterThan(0.5).isLessThanOrEqualTo(1);
        assertThat(round.total()).isEqualTo(MeanWeights.total(scaled));
    }
}
