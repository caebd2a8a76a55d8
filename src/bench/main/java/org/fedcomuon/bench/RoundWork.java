package org.fedcomuon.bench;

import java.util.EnumMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.fedcomuon.problem.Layout;

/**
 * The work of a device in a round of FedCoMuon or FedCoMuon-VR, part by part.
 *
 * @param design how the work is given to the device
 * @param layout of the parameters; d is 1
 * @param gradient one evaluation of one client
 * @param reduced whether it is FedCoMuon-VR, which evaluates twice
 * @param clients of all devices
 * @param tau steps per round
 * @param iteration of Newton-Schulz
 */
record RoundWork(
        Design design,
        Layout layout,
        GradientWork gradient,
        boolean reduced,
        int clients,
        int tau,
        MuonWork.Iteration iteration) {
    /** The parts of a step. */
    enum Part {
        GRADIENT,
        TRACK,
        ORTHOGONALIZE,
        AVERAGE;

        @Override
        public String toString() {
            return name().toLowerCase(Locale.ROOT);
        }
    }

    /** The number of variables of the size of the model per client. */
    private static final int VARIABLES = 3;

    private static final int VARIABLES_REDUCED = 6;

    /** Returns the work of a step for the given number of clients of one device. */
    Map<Part, WorkList> step(int own) {
        var parts = new EnumMap<Part, WorkList>(Part.class);
        parts.put(Part.GRADIENT, gradient.of(design, own).times(evaluations()));
        parts.put(Part.TRACK, track(own));
        parts.put(Part.ORTHOGONALIZE, MuonWork.step(design, layout, own, iteration));
        return parts;
    }

    /**
     * Returns all steps of a round on one of the devices. In the first step all clients have the same weights and
     * momentum, so it is computed once and copied.
     */
    Map<Part, WorkList> round(int devices) {
        int own = Math.ceilDiv(clients, devices);
        Map<Part, WorkList> step = step(own);
        var parts = new EnumMap<Part, WorkList>(Part.class);
        parts.put(Part.GRADIENT, step.get(Part.GRADIENT).times(tau));
        WorkList checked = FusedWork.allFinite(design, (double) own * layout.length());
        WorkList track = step.get(Part.TRACK).times(tau);
        parts.put(Part.TRACK, design == Design.WITH_WAITS ? track.and(checked) : track); // W, after it was averaged
        WorkList first = MuonWork.step(design, layout, 1, iteration);
        if (own > 1) {
            first = first.and(FusedWork.ema((double) (own - 1) * layout.length()));
        }
        parts.put(Part.ORTHOGONALIZE, first.and(step.get(Part.ORTHOGONALIZE).times(tau - 1)));
        WorkList average = ExchangeWork.average(layout.length(), clients, devices);
        WorkList exchange = average.and(average); // W and M
        if (design != Design.WITH_WAITS) {
            exchange = exchange.and(checked).and(checked); // before, so that a client can be named
        }
        if (design != Design.WITH_WAITS && devices > 1) {
            // Before another device reads its values, a device knows that they are sound. W and M are averaged
            // together,
            // or one after the other.
            exchange = exchange.and(
                    WorkList.of(KernelWork.wait("the values are sound")).times(evaluations()));
        }
        parts.put(Part.AVERAGE, exchange);
        return parts;
    }

    int evaluations() {
        return reduced ? 2 : 1;
    }

    /** Returns the same work in another design. */
    RoundWork in(Design other) {
        return new RoundWork(other, layout, gradient, reduced, clients, tau, iteration);
    }

    /**
     * Returns how often the host waits for our operations in a step, on average over a round on one of the devices, and
     * without what libtorch waits for.
     */
    double waits(int devices) {
        Map<Part, WorkList> round = round(devices);
        return (double) (WorkList.concat(round.values()).waits()
                        - round.get(Part.GRADIENT).waits())
                / tau;
    }

    /** Returns the work of trackers and momentum, and of the check for NaN in the values of the clients. */
    private WorkList track(int own) {
        double n = (double) own * layout.length();
        WorkList value = WorkList.of(KernelWork.fromHost("values from the host", 4.0 * own));
        WorkList ready = WorkList.of(KernelWork.wait("the weights are complete"));
        WorkList ask = WorkList.of(KernelWork.tiny("values to the host", 1));
        WorkList asked = WorkList.of(KernelWork.wait("the values are on the host"));
        WorkList evaluated = value.and(FusedWork.valuesFinite(design, own)).and(FusedWork.allFinite(design, n));
        WorkList outer = ask.and(value).and(FusedWork.valuesFinite(design, own));
        if (!reduced) {
            return WorkList.concat(
                    List.of(ready, evaluated, FusedWork.ema(own), asked, outer, FusedWork.compose(n, 1)));
        }
        return WorkList.concat(List.of(
                ready,
                evaluated,
                evaluated,
                FusedWork.ema(own), // u' = u
                FusedWork.storm(own), // u'
                asked, // of both
                outer,
                outer,
                FusedWork.ema(own), // u = u'
                FusedWork.storm(own), // v
                FusedWork.project(design, own),
                FusedWork.storm(n), // H
                FusedWork.projectCompose(design, n, 1),
                FusedWork.ema(n))); // Wold = W
    }

    /** Returns the size of the method's variables on one of the devices, in bytes. */
    double variableBytes(int devices) {
        return (reduced ? VARIABLES_REDUCED : VARIABLES)
                * (double) Math.ceilDiv(clients, devices)
                * layout.length()
                * Float.BYTES;
    }
}
