package backends_test

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// The intruder is this test's executable, run as a command. It says what it finds of the
// secrets that the test planted, and what it could do that it must not. Outside of a
// sandbox it does nothing, and looks only where it is told to.
const (
	intruderVariable = "FORGE_INTRUDER"      // the repository
	onlyVariable     = "FORGE_INTRUDER_ONLY" // what to look at, as a list of paths and addresses
)

var canary = regexp.MustCompile(`CANARY-[a-z-]+-[A-Z0-9]{20,}`)

type intruder struct {
	seen    map[string]bool
	visited map[[2]uint64]bool
	repo    string // of the person
	out     io.Writer
}

// intrude runs the intruder; it does not return.
func intrude(repo string) {
	in := intruder{seen: map[string]bool{}, visited: map[[2]uint64]bool{}, repo: repo, out: os.Stdout}
	in.look("environment", []byte(strings.Join(os.Environ(), "\n")))
	if first, err := os.ReadFile("/proc/1/cmdline"); err == nil && strings.HasPrefix(string(first), "pfl-forge-supervisor") {
		in.files()
		in.processes()
		in.sockets()
		in.actions()
	} else {
		in.only(filepath.SplitList(os.Getenv(onlyVariable)))
	}
	fmt.Fprintln(in.out, "searched everything")
	os.Exit(0)
}

func (in *intruder) look(where string, data []byte) {
	for _, found := range canary.FindAll(data, -1) {
		if !in.seen[string(found)] {
			in.seen[string(found)] = true
			fmt.Fprintf(in.out, "found %s in %s\n", found, where)
		}
	}
}

// only looks at some things of the machine, and touches nothing.
func (in *intruder) only(list []string) {
	for _, at := range list {
		if data, err := os.ReadFile(at); err == nil {
			in.look(at, data)
			continue
		}
		in.walk(at)
		network := "unix"
		if _, _, err := net.SplitHostPort(strings.ReplaceAll(at, "=", ":")); err == nil {
			network = "tcp"
		}
		if conn, err := net.DialTimeout(network, strings.ReplaceAll(at, "=", ":"), time.Second); err == nil {
			in.listen(at, conn)
		}
	}
}

func (in *intruder) did(what string, err error) {
	if err == nil {
		fmt.Fprintf(in.out, "did %s\n", what)
	}
}

// files reads every file that is not of the system, through links too.
func (in *intruder) files() {
	_ = os.Symlink("/", "way-out")
	_ = os.Symlink(filepath.Join(in.repo, ".forge"), "way-in")
	for _, root := range []string{"/", "/proc/1/root", "/proc/self/root", "way-out/", "way-in/"} {
		in.walk(root)
	}
}

func (in *intruder) walk(root string) {
	_ = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return nil //nolint:nilerr // what cannot be seen is what is wanted
		case d.IsDir() && (slices.Contains([]string{"usr", "proc", "sys", "pts"}, d.Name()) || in.been(path)):
			return fs.SkipDir
		case d.Type().IsRegular():
			if info, err := d.Info(); err == nil && info.Mode().IsRegular() && info.Size() < 1<<20 {
				data, _ := os.ReadFile(path)
				in.look(path, data)
			}
		}
		return nil
	})
}

// been reports whether a directory was looked through before, under whatever name.
func (in *intruder) been(dir string) bool {
	var st unix.Stat_t
	if unix.Stat(dir, &st) != nil {
		return false
	}
	id := [2]uint64{st.Dev, st.Ino}
	before := in.visited[id]
	in.visited[id] = true
	return before
}

func (in *intruder) processes() {
	for pid := range 40000 {
		dir := "/proc/" + strconv.Itoa(pid)
		for _, name := range []string{"environ", "cmdline"} {
			if data, err := os.ReadFile(dir + "/" + name); err == nil {
				in.look(dir+"/"+name, data)
			}
		}
		if pid > 0 && pid < 10 {
			for _, name := range []string{"root", "cwd"} {
				in.walk(dir + "/" + name + "/")
			}
		}
	}
	for _, pid := range []int{1, os.Getppid()} {
		if pid > 1 {
			continue // its own parent is its own business
		}
		in.did("attach to process "+strconv.Itoa(pid), syscall.PtraceAttach(pid))
		_, err := os.ReadFile("/proc/1/mem")
		in.did("read the memory of process 1", err)
	}
}

// sockets listens to every one that it finds.
func (in *intruder) sockets() {
	unixes, _ := os.ReadFile("/proc/net/unix")
	for line := range strings.Lines(string(unixes)) {
		fields := strings.Fields(line)
		if len(fields) < 8 {
			continue
		}
		conn, err := net.DialTimeout("unix", fields[7], time.Second)
		if err != nil {
			continue
		}
		in.listen("unix "+fields[7], conn)
	}
	tcp, _ := os.ReadFile("/proc/net/tcp")
	for line := range strings.Lines(string(tcp)) {
		fields := strings.Fields(line)
		if len(fields) < 4 || fields[3] != "0A" {
			continue
		}
		_, hex, _ := strings.Cut(fields[1], ":")
		port, err := strconv.ParseUint(hex, 16, 16)
		if err != nil {
			continue
		}
		if conn, err := net.DialTimeout("tcp", fmt.Sprintf("127.0.0.1:%d", port), time.Second); err == nil {
			in.listen(fmt.Sprintf("port %d", port), conn)
		}
	}
}

func (in *intruder) listen(name string, conn net.Conn) {
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(200 * time.Millisecond))
	_, _ = io.WriteString(conn, "GET / HTTP/1.0\r\n\r\n")
	var got bytes.Buffer
	_, _ = io.Copy(&got, io.LimitReader(conn, 1<<16))
	in.look(name, got.Bytes())
}

// actions tries what only the owner of the machine or of the repository may do.
func (in *intruder) actions() {
	write := func(path string) {
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
		if err == nil {
			defer f.Close()
			if _, err = f.WriteString("\n"); err == nil {
				in.did("write to "+path, nil)
			}
		}
	}
	for _, path := range []string{
		in.repo + "/.git/config", in.repo + "/README.md", in.repo + "/.forge/nats/token", "/etc/passwd", "/etc/hosts", "/usr/bin/env",
		"/proc/sys/kernel/core_pattern", "/proc/sysrq-trigger", "/sys/kernel/mm/transparent_hugepage/enabled",
	} {
		write(path)
	}
	_ = os.WriteFile(in.repo+"/planted", nil, 0o644) // there is a private /tmp, in which this is nothing
	for _, dir := range []string{in.repo + "/.git/hooks", in.repo + "/.git/objects", in.repo + "/.claude", "/usr/bin", "/etc", "/"} {
		name := dir + "/planted"
		in.did("create "+name, os.WriteFile(name, nil, 0o644))
	}
	in.did("mount", unix.Mount("tmpfs", "/tmp", "tmpfs", 0, ""))
	in.did("remount", unix.Mount("", "/", "", unix.MS_REMOUNT|unix.MS_BIND, ""))
	in.did("unmount /proc", unix.Unmount("/proc", unix.MNT_DETACH))
	in.did("make a device", unix.Mknod("/tmp/device", unix.S_IFBLK|0o600, int(unix.Mkdev(8, 0))))
	in.did("make a namespace", unix.Unshare(unix.CLONE_NEWNS))
	in.did("load a program into the kernel", os.WriteFile("/proc/self/uid_map", []byte("0 0 1"), 0o644))
	if os.Getuid() == 0 {
		in.did("change the owner of a file", os.Chown("/tmp", 12345, 12345))
		in.did("become somebody else", syscall.Setuid(12345))
	} else {
		in.did("become root", syscall.Setuid(0))
	}
	// A new user namespace needs a process of its own.
	cmd := syscall.ProcAttr{Sys: &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWUSER}, Files: []uintptr{0, 1, 2}}
	_, err := syscall.ForkExec("/bin/true", []string{"true"}, &cmd)
	in.did("make a user namespace", err)
}
