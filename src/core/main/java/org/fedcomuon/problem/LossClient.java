package org.fedcomuon.problem;

import java.util.OptionalDouble;

/** A loss under a risk, as a compositional client with d = 1. */
class LossClient implements Client {
    private final Loss loss;
    private final Risk risk;

    private LossClient(Loss loss, Risk risk) {
        this.loss = loss;
        this.risk = risk;
    }

    static Client of(Loss loss, Risk risk) {
        return loss instanceof HessianProduct second ? new Twice(loss, second, risk) : new LossClient(loss, risk);
    }

    @Override
    public void inner(Sample xi, Point w, Floats value, Jacobian jacobian) throws Exception {
        value.set(0, loss.evaluate(xi, w, jacobian.component(0)));
    }

    @Override
    public void outerGradient(Sample zeta, Floats y, Floats gradient) {
        gradient.set(0, risk.derivative(y.get(0)));
    }

    @Override
    public OptionalDouble outerValue(Sample zeta, Floats y) {
        return OptionalDouble.of(risk.value(y.get(0)));
    }

    /** The client of a loss that is twice differentiable. */
    private static final class Twice extends LossClient implements HessianProduct {
        private final HessianProduct second;

        Twice(Loss loss, HessianProduct second, Risk risk) {
            super(loss, risk);
            this.second = second;
        }

        @Override
        public void hessianProduct(Sample xi, Point w, Point direction, Point product) throws Exception {
            second.hessianProduct(xi, w, direction, product);
        }
    }
}
