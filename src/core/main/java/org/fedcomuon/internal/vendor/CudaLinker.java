package org.fedcomuon.internal.vendor;

import static java.util.stream.Collectors.joining;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.stream.IntStream;

/**
 * Opens NVIDIA's libraries, which no build of ours ships: in one directory, or wherever the system's linker finds them.
 * Open libraries are never closed.
 *
 * <p>It uses {@code dlopen}, because {@link SymbolLookup#libraryLookup} hides the linker's message, which names what is
 * missing, and because with {@link System#load} the symbols of a real library and of its simulation, which may be
 * needed in one process, could not be told apart.
 */
public final class CudaLinker {
    /** Names the one directory to look in. */
    static final String DIRECTORY_PROPERTY = "fedcomuon.cuda.libraries";

    private static final int RTLD_LAZY = 1; // these libraries have tens of thousands of symbols
    private static final FunctionDescriptor DLOPEN =
            FunctionDescriptor.of(ValueLayout.ADDRESS, ValueLayout.ADDRESS, ValueLayout.JAVA_INT);
    private static final FunctionDescriptor DLSYM =
            FunctionDescriptor.of(ValueLayout.ADDRESS, ValueLayout.ADDRESS, ValueLayout.ADDRESS);
    private static final FunctionDescriptor DLERROR = FunctionDescriptor.of(ValueLayout.ADDRESS);

    private final Optional<Path> directory;

    private CudaLinker(Optional<Path> directory) {
        this.directory = directory;
    }

    /** Looks in {@code directory} only. */
    public static CudaLinker in(Path directory) {
        return new CudaLinker(Optional.of(directory));
    }

    /** Searches the directory in {@value #DIRECTORY_PROPERTY}, or else where the system's linker searches. */
    static CudaLinker system() {
        return new CudaLinker(
                Optional.ofNullable(System.getProperty(DIRECTORY_PROPERTY)).map(Path::of));
    }

    /** NVIDIA's libraries, with their file names, the newest first. */
    public enum Vendor {
        CUBLAS("cuBLAS", "libcublas.so", 13, 12),
        CUSOLVER("cuSOLVER", "libcusolver.so", 12, 11),
        NCCL("NCCL", "libnccl.so", 2, 2);

        private final String title;
        private final String file;
        private final int newest;
        private final int oldest;

        Vendor(String title, String file, int newest, int oldest) {
            this.title = title;
            this.file = file;
            this.newest = newest;
            this.oldest = oldest;
        }

        List<String> files() {
            return IntStream.iterate(newest, version -> version >= oldest, version -> version - 1)
                    .mapToObj(version -> file + "." + version)
                    .toList();
        }

        public String title() {
            return title;
        }
    }

    /** The result of a search. */
    public sealed interface Outcome permits Opened, Missing {}

    /** A library that is open. */
    public record Opened(Vendor vendor, String file, SymbolLookup symbols) implements Outcome {
        /** Returns whether it is one of ours that works on simulated devices only. */
        boolean isSimulated() {
            return symbols.find("cudasim_stand_in").isPresent();
        }

        /**
         * Returns a function with the signature that the generated {@code bindings} have for it. Their own handles
         * cannot be used: they look in what was loaded by {@code System.load}.
         *
         * @throws VendorException.LibraryMissing when the library does not have it
         */
        public MethodHandle function(Class<?> bindings, String name) {
            return find(bindings, name).orElseThrow(() -> missing(name));
        }

        /**
         * Returns a function with a given signature, for one that takes a struct by value: in the bindings that looks
         * like a pointer.
         *
         * @throws VendorException.LibraryMissing when the library does not have it
         */
        MethodHandle function(String name, FunctionDescriptor descriptor) {
            return symbols.find(name)
                    .map(address -> Linker.nativeLinker().downcallHandle(address, descriptor))
                    .orElseThrow(() -> missing(name));
        }

        private VendorException.LibraryMissing missing(String name) {
            return new VendorException.LibraryMissing(
                    "%s has no %s: not a version that can be used".formatted(file, name));
        }

        /** Returns a function that not every version has. */
        Optional<MethodHandle> find(Class<?> bindings, String name) {
            Method declared = Arrays.stream(bindings.getMethods())
                    .filter(method -> method.getName().equals(name) && Modifier.isStatic(method.getModifiers()))
                    .findFirst()
                    .orElseThrow(() -> new AssertionError("no binding of " + name));
            MemoryLayout[] parameters = Arrays.stream(declared.getParameterTypes())
                    .map(CudaLinker::layout)
                    .toArray(MemoryLayout[]::new);
            var descriptor = FunctionDescriptor.of(layout(declared.getReturnType()), parameters);
            return symbols.find(name).map(address -> Linker.nativeLinker().downcallHandle(address, descriptor));
        }
    }

    /** The library is missing; {@code reason} is one line. */
    public record Missing(String reason) implements Outcome {}

    /** Opens the newest available version. */
    public Outcome open(Vendor vendor) {
        if (directory.isPresent()) {
            Path where = directory.get().toAbsolutePath();
            for (String file : vendor.files()) {
                Path path = where.resolve(file);
                if (Files.exists(path)) {
                    return open(vendor, path.toString());
                }
            }
            return new Missing("no %s in %s".formatted(String.join(" or ", vendor.files()), where));
        }
        var words = new ArrayList<String>();
        for (String file : vendor.files()) {
            switch (open(vendor, file)) {
                case Opened opened -> {
                    return opened;
                }
                case Missing(String reason) -> words.add(reason);
            }
        }
        return new Missing("%s; name a directory with -D%s=DIR"
                .formatted(words.stream().collect(joining("; ")), DIRECTORY_PROPERTY));
    }

    /**
     * Opens one file, by its path or as the system's linker finds it, unless a library of that name is loaded already.
     */
    static Outcome open(Vendor vendor, String file) {
        try (Arena arena = Arena.ofConfined()) {
            var handle = (MemorySegment) Calls.OPEN.invokeExact(arena.allocateFrom(file), RTLD_LAZY);
            if (handle.equals(MemorySegment.NULL)) {
                var words = (MemorySegment) Calls.ERROR.invokeExact();
                return new Missing(words.reinterpret(Long.MAX_VALUE).getString(0));
            }
            return new Opened(vendor, file, name -> symbol(handle, name));
        } catch (RuntimeException | Error e) {
            throw e;
        } catch (Throwable e) {
            throw new AssertionError("a downcall throws nothing checked", e);
        }
    }

    /** Opens those of the {@code files} that are in the directory, for libraries that come to need them by name. */
    void preload(Vendor vendor, List<String> files) {
        directory.ifPresent(where -> files.stream()
                .map(where.toAbsolutePath()::resolve)
                .filter(Files::exists)
                .forEach(file -> open(vendor, file.toString())));
    }

    private static Optional<MemorySegment> symbol(MemorySegment handle, String name) {
        try (Arena arena = Arena.ofConfined()) {
            var address = (MemorySegment) Calls.SYMBOL.invokeExact(handle, arena.allocateFrom(name));
            return address.equals(MemorySegment.NULL) ? Optional.empty() : Optional.of(address);
        } catch (RuntimeException | Error e) {
            throw e;
        } catch (Throwable e) {
            throw new AssertionError("a downcall throws nothing checked", e);
        }
    }

    private static MemoryLayout layout(Class<?> type) {
        if (type == MemorySegment.class) {
            return ValueLayout.ADDRESS;
        }
        if (type == int.class) {
            return ValueLayout.JAVA_INT;
        }
        if (type == long.class) {
            return ValueLayout.JAVA_LONG;
        }
        if (type == double.class) {
            return ValueLayout.JAVA_DOUBLE;
        }
        if (type == byte.class) {
            return ValueLayout.JAVA_BYTE;
        }
        throw new AssertionError("no function of ours has a " + type);
    }

    private static final class Calls {
        static final MethodHandle OPEN = handle("dlopen", DLOPEN);
        static final MethodHandle SYMBOL = handle("dlsym", DLSYM);
        static final MethodHandle ERROR = handle("dlerror", DLERROR);

        private static MethodHandle handle(String name, FunctionDescriptor descriptor) {
            Linker linker = Linker.nativeLinker();
            return linker.downcallHandle(linker.defaultLookup().findOrThrow(name), descriptor);
        }
    }
}
