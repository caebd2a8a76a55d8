package org.fedcomuon.internal;

import java.io.IOException;
import java.nio.file.FileSystemException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFileAttributes;
import java.nio.file.attribute.PosixFilePermissions;

/**
 * Directories in which only this user and root can put or replace a file. What is loaded as native code comes from such
 * a directory only: between the look at a file and its loading there is a moment, and nothing but the directory keeps
 * others from using it.
 */
final class PrivateDirectory {
    private static final int GROUP_WRITES = 0020;
    private static final int OTHERS_WRITE = 0002;
    /** Who does not own an entry of such a directory can neither rename nor remove it. */
    private static final int STICKY = 01000;

    private static final int ROOT = 0;

    private PrivateDirectory() {}

    /**
     * Makes {@code directory} for this user alone, or looks at the one that is there.
     *
     * @param vouched whether the user has named it, and so answers for the directories above
     * @return it without symbolic links, so that what was looked at is what is used
     * @throws FileSystemException when another user could change what is in it
     */
    static Path make(Path directory, boolean vouched) throws IOException {
        return make(directory, vouched, self());
    }

    static Path make(Path directory, boolean vouched, int self) throws IOException {
        Files.createDirectories(
                directory, PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwx------")));
        Path real = directory.toRealPath();
        if (uid(real) != self) {
            throw new FileSystemException(real.toString(), null, "it belongs to another user");
        }
        if (isWritableByOthers(real)) {
            throw new FileSystemException(
                    real.toString(), null, "other users can write to it; remove it, or empty it and: chmod go-w");
        }
        for (Path above = real.getParent(); above != null && !vouched; above = above.getParent()) {
            requireGuarded(real, above, self);
        }
        return real;
    }

    /** Returns whether a file in such a directory is one that only this user can have written, and can write. */
    static boolean isOwn(Path file) throws IOException {
        return Files.isRegularFile(file, LinkOption.NOFOLLOW_LINKS)
                && uid(file) == self()
                && (mode(file) & (GROUP_WRITES | OTHERS_WRITE)) == 0;
    }

    private static void requireGuarded(Path directory, Path above, int self) throws IOException {
        int owner = uid(above);
        if (owner != self && owner != ROOT) {
            throw new FileSystemException(
                    directory.toString(), null, "%s, above it, belongs to another user".formatted(above));
        }
        if (isWritableByOthers(above) && (mode(above) & STICKY) == 0) {
            throw new FileSystemException(
                    directory.toString(), null, "other users can write to %s, above it".formatted(above));
        }
    }

    /**
     * Returns whether others can write to a directory. A group with its owner's name has no other members, as on
     * systems with a umask of 002.
     */
    private static boolean isWritableByOthers(Path directory) throws IOException {
        int mode = mode(directory);
        var attributes = Files.readAttributes(directory, PosixFileAttributes.class);
        boolean shared = !attributes.group().getName().equals(attributes.owner().getName());
        return (mode & OTHERS_WRITE) != 0 || ((mode & GROUP_WRITES) != 0 && shared);
    }

    private static int uid(Path file) throws IOException {
        return (int) Files.getAttribute(file, "unix:uid", LinkOption.NOFOLLOW_LINKS);
    }

    private static int mode(Path file) throws IOException {
        return (int) Files.getAttribute(file, "unix:mode", LinkOption.NOFOLLOW_LINKS);
    }

    /** Returns the user of this process, not from the user's name, which is a property that any code may set. */
    static int self() throws IOException {
        return (int) Files.getAttribute(Path.of("/proc/self"), "unix:uid");
    }
}
