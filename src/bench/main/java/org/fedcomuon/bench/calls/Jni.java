package org.fedcomuon.bench.calls;

import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;

/** The library of {@link JniCalls}, for the contenders that need it; without it, the others can still run. */
@State(Scope.Thread)
public class Jni {
    @Setup
    public void load() {
        JniCalls.load();
    }
}
