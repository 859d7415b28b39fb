package sandbox

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Path returns the mounts that make a path visible, under its own name and under the
// one that its links lead to; none if the path does not exist.
func Path(path string, kind Kind) []Mount {
	path = filepath.Clean(path)
	actual, err := filepath.EvalSymlinks(path)
	if err != nil || !filepath.IsAbs(path) {
		return nil
	}
	out := []Mount{{Path: actual, Kind: kind}}
	// Programs use the name with links, and may resolve it.
	if actual != path {
		out = append(out, links(path)...)
	}
	return out
}

// links returns the symbolic links that a path leads through.
func links(path string) []Mount {
	var out []Mount
	for range 40 { // as many as the kernel follows
		at, rest := "", strings.Split(strings.Trim(path, "/"), "/")
		found := false
		for i, name := range rest {
			at += "/" + name
			// The first link on the way decides how the rest of the path is read.
			to, err := os.Readlink(at)
			if err != nil {
				continue
			}
			out = append(out, Mount{Path: at, Kind: Link, To: to})
			if !filepath.IsAbs(to) {
				to = filepath.Join(filepath.Dir(at), to)
			}
			path = filepath.Join(append([]string{to}, rest[i+1:]...)...)
			found = true
			break
		}
		if !found {
			break
		}
	}
	return out
}

// systemPaths lists patterns of paths that programs commonly need. Paths that have
// secrets on some machines, such as the rest of /etc, are not in it.
var systemPaths = []string{
	"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/gnu/store",
	"/sys/devices/system", "/sys/fs/cgroup", "/sys/kernel/mm",
	"/etc/alternatives", "/etc/apk", "/etc/bash.bashrc", "/etc/bash_completion.d", "/etc/ca-certificates", "/etc/ca-certificates.conf",
	"/etc/crypto-policies", "/etc/debian_version", "/etc/fonts", "/etc/gai.conf", "/etc/group", "/etc/host.conf", "/etc/hosts",
	"/etc/inputrc", "/etc/java", "/etc/ld-musl-x86_64.path", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d",
	"/etc/locale.alias", "/etc/localtime", "/etc/magic", "/etc/magic.mime", "/etc/mime.types", "/etc/networks", "/etc/nsswitch.conf",
	"/etc/os-release", "/etc/passwd", "/etc/perl", "/etc/php", "/etc/pki/ca-trust", "/etc/pki/tls/cert.pem", "/etc/pki/tls/certs",
	"/etc/pki/tls/openssl.cnf", "/etc/profile", "/etc/protocols", "/etc/python3", "/etc/resolv.conf", "/etc/rpc", "/etc/services",
	"/etc/shells", "/etc/ssl/cert.pem", "/etc/ssl/certs", "/etc/ssl/openssl.cnf", "/etc/terminfo", "/etc/timezone",
	"/etc/java-*", "/etc/python3.*",
}

// System returns the mounts that every command gets: the system's programs and
// libraries, and those of the directories in search, a PATH. home is the user's
// directory, which is never shown as a whole.
func System(search, home string) []Mount {
	var out []Mount
	for _, pattern := range systemPaths {
		found, _ := filepath.Glob(pattern)
		for _, path := range found {
			out = append(out, Path(path, ReadOnly)...)
		}
	}
	for _, dir := range filepath.SplitList(search) {
		if filepath.IsAbs(dir) {
			out = append(out, toolMounts(filepath.Clean(dir), filepath.Clean(home))...)
		}
	}
	return slices.CompactFunc(out, func(a, b Mount) bool { return a.Path == b.Path && a.Kind == b.Kind && a.To == b.To })
}

// toolMounts returns the mounts for the programs in a directory of PATH: the directory
// itself, and if it is the bin directory of an installation, the whole installation.
func toolMounts(dir, home string) []Mount {
	out := Path(dir, ReadOnly)
	prefix := filepath.Dir(dir)
	if !slices.Contains([]string{"bin", "sbin", "shims"}, filepath.Base(dir)) || !isInstallation(prefix, home) {
		return out
	}
	return append(out, Path(prefix, ReadOnly)...)
}

// isInstallation reports whether prefix belongs to a tool alone. Directories with a
// person's own files, or with keys beside programs, do not.
func isInstallation(prefix, home string) bool {
	if within(prefix, home) || prefix == filepath.Join(home, ".local") || prefix == filepath.Join(home, ".cargo") {
		return false
	}
	if _, err := os.Lstat(filepath.Join(prefix, ".git")); err == nil {
		// A clone is a project or, with shims, a version manager.
		_, err := os.Lstat(filepath.Join(prefix, "shims"))
		return err == nil
	}
	return true
}

// Program returns the mounts that an executable outside the system's paths needs: its
// file, and the npm packages that it belongs to.
func Program(path string) []Mount {
	actual, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil
	}
	out := Path(path, ReadOnly)
	for _, p := range []string{path, actual} {
		if before, _, ok := strings.Cut(p, "/node_modules/"); ok {
			out = append(out, Path(before+"/node_modules", ReadOnly)...)
		}
	}
	return out
}
