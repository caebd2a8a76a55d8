package org.fedcomuon.federation;

import java.util.List;
import java.util.stream.Stream;
import org.fedcomuon.device.Device;
import org.fedcomuon.method.ComFedL;
import org.fedcomuon.method.Compressor;
import org.fedcomuon.method.Ef21Muon;
import org.fedcomuon.method.FedAvg;
import org.fedcomuon.method.FedCoMuon;
import org.fedcomuon.method.FedCoMuonVr;
import org.fedcomuon.method.FedDro;
import org.fedcomuon.method.FedMaml;
import org.fedcomuon.method.FedMuon;
import org.fedcomuon.method.FedMuonBc;
import org.fedcomuon.method.FedMuonLga;
import org.fedcomuon.method.FedOpt;
import org.fedcomuon.method.FedProx;
import org.fedcomuon.method.FgdroCvar;
import org.fedcomuon.method.FgdroKl;
import org.fedcomuon.method.LocalMoml;
import org.fedcomuon.method.LocalScgdm;
import org.fedcomuon.method.Method;
import org.fedcomuon.method.Muon;
import org.fedcomuon.method.Scaffold;
import org.fedcomuon.method.Schedule;
import org.fedcomuon.problem.MatrixQuadratics;
import org.fedcomuon.problem.Problem;
import org.fedcomuon.problem.Risk;
import org.fedcomuon.problem.testbed.RateTestbed;

/** Every method, with parameters that suit small problems. */
final class AllMethods {
    static final Muon MUON = Muon.standard();

    private AllMethods() {}

    static Schedule constant(double value) {
        return Schedule.constant(value);
    }

    static FedCoMuon fedCoMuon() {
        return new FedCoMuon(constant(0.02), constant(0.2), constant(0.1), MUON);
    }

    static FedCoMuonVr fedCoMuonVr() {
        return new FedCoMuonVr(
                constant(0.02), constant(0.2), constant(0.8), constant(0.9), constant(0.2), 10, 10, 3, MUON);
    }

    static Stream<Method> all() {
        return Stream.concat(
                Stream.concat(
                        Stream.of(
                                fedCoMuon(),
                                fedCoMuonVr(),
                                new ComFedL(constant(0.02)),
                                localScgdm(),
                                ahead(),
                                adaptive()),
                        Stream.concat(ofLosses(), Stream.of(new FedDro(constant(0.02), constant(0.2))))),
                plain());
    }

    /** Every method that runs on problems with d > 1. */
    static Stream<Method> ofAnyProblem() {
        return all().filter(method -> ofLosses().noneMatch(method::equals));
    }

    /** Those that compare the losses of clients. */
    static Stream<Method> ofLosses() {
        return Stream.of(
                new FgdroKl(constant(0.02), constant(0.2), 0.5),
                new FgdroCvar(constant(0.02), constant(0.01), constant(0.2), 0.5, 0.1));
    }

    /** Returns a problem for a method, with W of one shape: d = 5, or d = 1 for one that compares losses. */
    static Problem problem(Method method, int clients) {
        return ofLosses().anyMatch(method::equals)
                ? new MatrixQuadratics(clients, RateTestbed.ROWS, RateTestbed.COLS, 0.3, 0.05, Risk.mean(), 1)
                : new RateTestbed(clients, 1);
    }

    /** With options that have state of a client. */
    private static FedCoMuon ahead() {
        Muon muon = MUON.withNesterov(true).withWeightDecay(0.1);
        return new FedCoMuon(constant(0.02), constant(0.2), constant(0.1), muon);
    }

    private static FedCoMuonVr adaptive() {
        Muon muon = MUON.withAdamW(Muon.AdamW.ofVectors(0.5).and(List.of("*")));
        return new FedCoMuonVr(constant(0.02), constant(0.2), constant(0.8), constant(0.9), constant(0.2), muon);
    }

    private static LocalScgdm localScgdm() {
        return new LocalScgdm(constant(0.02), constant(0.2), constant(0.3), false);
    }

    /** Those that minimise the plain loss. */
    static Stream<Method> plain() {
        return List.<Method>of(
                new FedAvg(constant(0.05)),
                new FedMaml(0.05, constant(0.05), false),
                new LocalMoml(0.05, constant(0.05), constant(0.5), false),
                new FedMuon(constant(0.02), constant(0.1), MUON),
                new FedMuonLga(constant(0.02), constant(0.2), constant(0.8), MUON),
                new FedMuonBc(constant(0.02), constant(0.1), MUON),
                new FedProx(constant(0.05), 0.5),
                new Scaffold(constant(0.05), 1),
                new FedOpt(Device.AdaptiveRule.ADAM, constant(0.05), constant(0.05), 0.9, 0.99, 1e-3),
                new FedOpt(Device.AdaptiveRule.YOGI, constant(0.05), constant(0.05), 0.9, 0.99, 1e-3),
                new Ef21Muon(constant(0.05), constant(0.5), Compressor.topK(0.3), Compressor.none(), MUON),
                new Ef21Muon(constant(0.05), constant(0.5), Compressor.lowRank(1), Compressor.topK(0.5), MUON))
                .stream();
    }
}
