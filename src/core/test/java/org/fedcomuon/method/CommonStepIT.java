package org.fedcomuon.method;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.Arrays;
import java.util.stream.IntStream;
import org.fedcomuon.device.Device;
import org.fedcomuon.device.Devices;
import org.fedcomuon.device.InstructionSet;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Right after an average every client would make the same step: it is worked out once, and is what each would get. */
class CommonStepIT {
    private static final Testbed BED = Testbed.blocks();

    private Device device;
    private Clients clients;
    private Variable w;
    private Variable m;
    private int n;
    private Muon.Mover polar;

    @BeforeEach
    void open() {
        device = Devices.open("cpu:0", 2, InstructionSet.AUTO);
        clients = new Clients(
                device,
                BED.problem(),
                IntStream.range(0, BED.clients).boxed().toList(),
                1,
                ClientFault.Policy.FAIL,
                fault -> {},
                1);
        w = clients.weights();
        m = clients.state("M", clients.n());
        n = Math.toIntExact(clients.n());
        polar = Muon.standard().on(clients);
        for (int k = 0; k < BED.clients; k++) {
            setRow(m, k, wave(1));
            setRow(w, k, wave(2));
        }
    }

    @AfterEach
    void close() {
        clients.close();
        assertThat(device.liveBytes()).isZero();
        device.close();
    }

    private float[] wave(double phase) {
        var row = new float[n];
        for (int i = 0; i < n; i++) {
            row[i] = (float) Math.sin(phase + 0.7 * i);
        }
        return row;
    }

    private void setRow(Variable variable, int k, float[] row) {
        variable.buffer().copyIn((long) k * n, row);
    }

    private float[] row(Variable variable, int k) {
        return variable.buffer().toFloats((long) k * n, n);
    }

    @Test
    void theBitsAreThoseOfEveryClientAlone() {
        polar.step(0.1, m, w); // nobody has said that they are the same
        float[] expected = row(w, 0);
        for (int k = 0; k < BED.clients; k++) {
            assertThat(row(w, k)).isEqualTo(expected);
            setRow(w, k, wave(2));
        }
        m.becomeCommon();
        w.becomeCommon();
        polar.step(0.1, m, w);
        for (int k = 0; k < BED.clients; k++) {
            assertThat(row(w, k)).isEqualTo(expected);
        }
        assertThat(expected).isNotEqualTo(wave(2));
    }

    @Test
    void onlyOneClientIsLookedAt() {
        m.becomeCommon();
        w.becomeCommon();
        var spoilt = new float[n];
        Arrays.fill(spoilt, Float.NaN);
        setRow(m, 1, spoilt); // behind its back
        polar.step(0.1, m, w);
        assertThat(row(w, 1)).isEqualTo(row(w, 0));
        assertThatThrownBy(() -> polar.step(0.1, m, w))
                .describedAs("W is no longer known to be common")
                .isInstanceOf(DivergedException.class);
    }

    @Test
    void whoDoesNotTakePartIsLeftAlone() {
        m.becomeCommon();
        w.becomeCommon();
        boolean[] taking = new boolean[BED.clients];
        Arrays.fill(taking, true);
        taking[0] = false;
        taking[2] = false;
        clients.admit(taking);
        polar.step(0.1, m, w);
        assertThat(row(w, 0)).isEqualTo(wave(2));
        assertThat(row(w, 2)).isEqualTo(wave(2));
        for (int k : new int[] {3, 4}) {
            assertThat(row(w, k)).isEqualTo(row(w, 1)).isNotEqualTo(wave(2));
        }
    }

    @Test
    void whateverWritesEndsIt() {
        m.becomeCommon();
        m.ema(0.5, w);
        assertThat(m.isCommon()).isFalse();
        m.zero();
        assertThat(m.isCommon()).isTrue();
        Variable loss = clients.scratch("loss", clients.d());
        Variable jacobian = clients.scratch("Jacobian", clients.d() * clients.n());
        loss.zero();
        jacobian.fill(1);
        clients.inner(w, loss, jacobian);
        assertThat(loss.isCommon()).isFalse();
        assertThat(jacobian.isCommon()).isFalse();
    }
}
