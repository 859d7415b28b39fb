package process

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/pfl-forge/pfl-forge/agent/sandbox"
	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// probe is one way in which a command may reach something of the machine that it is not to reach.
type probe struct {
	family, name string
	// try returns nil if it has reached what is outside; it leaves nothing changed there.
	try func(*outside) error
	// needs are capabilities without which the way is closed outside of a sandbox too.
	needs []int
	// blind says why it may fail outside too.
	blind string
	// harm says what it would do outside, where it is not tried.
	harm string
	// network says that the way is closed by NetworkNone alone.
	network bool
}

// outside is what probes reach for: things of the machine that belong to no sandbox.
type outside struct {
	Secret string // a text that nothing inside holds
	Dir    string // a directory with a file called secret, of that text
	Pid    int    // a process with the text in its environment, arguments, directory and descriptors
	Test   int    // the process of the test, which has the text in its memory
	At     uintptr
	Port   int      // of a listener, TCP and UDP, on every address
	Addrs  []string // the addresses of the machine
	Shm    int      // a segment of shared memory
	Key    int      // a key of the user
	Queue  string   // a message queue
}

// file returns the path of the file with the secret.
func (o *outside) file() string { return filepath.Join(o.Dir, "secret") }

// abstract and path are addresses of sockets that listen outside.
func (o *outside) abstract() string { return "@probe-" + o.Secret }
func (o *outside) path() string     { return filepath.Join(o.Dir, "socket") }

var errNotReached = errors.New("not reached")

// reached returns nil if it is so.
func reached(yes bool) error {
	if yes {
		return nil
	}
	return errNotReached
}

// holds returns nil if a file can be read and has the secret.
func (o *outside) holds(path string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return reached(strings.Contains(string(data), o.Secret))
}

// anyProcess returns nil if try does for one of the processes in /proc other than this one.
func anyProcess(try func(dir string) error) error {
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		if dir != "/proc/"+strconv.Itoa(os.Getpid()) && try(dir) == nil {
			return nil
		}
	}
	return errNotReached
}

// mustBe returns nil if a system call succeeds.
func mustBe(nr uintptr, args ...uintptr) func(*outside) error {
	return func(*outside) error { return raw(nr, args...)() }
}

// opened opens a path and closes it.
func opened(path string, flags int) func(*outside) error {
	return func(*outside) error {
		fd, err := unix.Open(path, flags|unix.O_CLOEXEC|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
		if err != nil {
			return err
		}
		return unix.Close(fd)
	}
}

// allProbes are those of all families.
func allProbes() []probe {
	return slices.Concat(fileProbes(), processProbes(), privilegeProbes(), boundProbes(), networkProbes(), leakProbes())
}

// makeProbes tries every probe that is asked for, prints the names of those that reached
// something, and ends this process. Each has a thread of its own, which ends with it.
func makeProbes(which string) {
	var o outside
	if err := json.NewDecoder(os.Stdin).Decode(&o); err != nil {
		_, _ = fmt.Fprintln(os.Stdout, "no orders:", err)
		os.Exit(1)
	}
	ran := 0
	for _, p := range allProbes() {
		if which == "control" && p.harm != "" || which == string(sandbox.NetworkFull) && p.network {
			continue
		}
		ran++
		done := make(chan error)
		go func() {
			runtime.LockOSThread() // and never unlocks it: the thread may have changed
			done <- p.try(&o)
		}()
		if err := <-done; err == nil {
			_, _ = fmt.Fprintf(os.Stdout, "reached %s: %s\n", p.family, p.name)
		} else if which == "control" {
			_, _ = fmt.Fprintf(os.Stdout, "failed %s: %s: %v\n", p.family, p.name, err)
		}
	}
	_, _ = fmt.Fprintf(os.Stdout, "ran %d\n", ran)
	os.Exit(0)
}

// newOutside makes what probes reach for, for as long as the test lasts.
func newOutside(t *testing.T) *outside {
	t.Helper()
	secret := fmt.Sprintf("s3cr3t%d%d", os.Getpid(), os.Getppid())
	o := &outside{Secret: secret, Dir: t.TempDir(), Test: os.Getpid(), Queue: "probe-" + secret}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.WriteFile(o.file(), []byte(secret), 0o600))
	f, err := os.Open(o.file())
	must(err)
	t.Cleanup(func() { _ = f.Close() })
	mapped, err := unix.Mmap(int(f.Fd()), 0, len(secret), unix.PROT_READ, unix.MAP_SHARED)
	must(err)
	t.Cleanup(func() { _ = unix.Munmap(mapped) })
	o.At = uintptr(unsafe.Pointer(&mapped[0]))
	t.Setenv("PROBE_KEY", secret)

	victim := exec.Command("sleep", "600")
	victim.Args[0], victim.Dir, victim.Env, victim.ExtraFiles = secret, o.Dir, []string{"KEY=" + secret}, []*os.File{f}
	must(victim.Start())
	t.Cleanup(func() {
		_ = victim.Process.Kill()
		_ = victim.Wait()
	})
	o.Pid = victim.Process.Pid

	l, err := net.Listen("tcp", ":0")
	must(err)
	t.Cleanup(func() { _ = l.Close() })
	o.Port = l.Addr().(*net.TCPAddr).Port
	packets, err := net.ListenPacket("udp", fmt.Sprintf(":%d", o.Port))
	must(err)
	t.Cleanup(func() { _ = packets.Close() })
	go func() { // answers whoever sends something
		b := make([]byte, 10)
		for {
			n, from, err := packets.ReadFrom(b)
			if err != nil {
				return
			}
			_, _ = packets.WriteTo(b[:n], from)
		}
	}()
	for _, name := range []string{o.abstract(), o.path()} {
		l, err := net.Listen("unix", name)
		must(err)
		t.Cleanup(func() { _ = l.Close() })
	}
	addrs, err := net.InterfaceAddrs()
	must(err)
	for _, a := range addrs {
		if ip := a.(*net.IPNet).IP; !ip.IsLoopback() && !ip.IsLinkLocalUnicast() {
			o.Addrs = append(o.Addrs, ip.String())
		}
	}
	if o.Shm, err = unix.SysvShmGet(unix.IPC_PRIVATE, 4096, 0o600|unix.IPC_CREAT); err == nil {
		t.Cleanup(func() { _, _ = unix.SysvShmCtl(o.Shm, unix.IPC_RMID, nil) })
		data, err := unix.SysvShmAttach(o.Shm, 0, 0)
		must(err)
		copy(data, secret)
		must(unix.SysvShmDetach(data))
	}
	if o.Key, err = unix.AddKey("user", secret, []byte(secret), unix.KEY_SPEC_USER_KEYRING); err == nil {
		t.Cleanup(func() { _, _ = unix.KeyctlInt(unix.KEYCTL_UNLINK, o.Key, unix.KEY_SPEC_USER_KEYRING, 0, 0) })
	}
	if q, err := openQueue(o.Queue, unix.O_CREAT|unix.O_RDWR); err == nil {
		_ = unix.Close(q)
		t.Cleanup(func() {
			name, _ := unix.BytePtrFromString(o.Queue)
			_ = raw(unix.SYS_MQ_UNLINK, uintptr(unsafe.Pointer(name)))()
		})
	}
	return o
}

// lines returns the names in the lines of output that begin with a word.
func lines(output, word string) []string {
	var out []string
	for l := range strings.Lines(output) {
		if rest, ok := strings.CutPrefix(l, word+" "); ok {
			out = append(out, strings.TrimSpace(rest))
		}
	}
	return out
}

// privileged reports whether this process has all these capabilities.
func privileged(needs []int) bool {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var has [2]unix.CapUserData
	if unix.Capget(&header, &has[0]) != nil {
		return false
	}
	for _, c := range needs {
		if has[c/32].Effective&(1<<(c%32)) == 0 {
			return false
		}
	}
	return true
}

// TestProbes tries from within a sandbox to reach what is outside, in well over a hundred ways:
// none does. The same program without a sandbox, which is allowed what the user is allowed, gets
// there in each way: so that no probe is one that always fails. With TEST_OUTSIDE it is what is
// outside, for probes elsewhere: it prints their orders, and stays until its input ends.
func TestProbes(t *testing.T) {
	o := newOutside(t)
	orders, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	if os.Getenv("TEST_OUTSIDE") != "" {
		_, _ = fmt.Printf("%s\n", orders)
		_, _ = io.Copy(io.Discard, os.Stdin)
		return
	}
	if !offered(t) {
		return
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	control := exec.CommandContext(wait.Context(t), self)
	control.Env = append(os.Environ(), "TEST_PROBES=control")
	control.Dir = t.TempDir()
	control.Stdin = strings.NewReader(string(orders))
	leaked, err := os.Open(o.file())
	if err != nil {
		t.Fatal(err)
	}
	defer leaked.Close()
	control.ExtraFiles = []*os.File{leaked}
	control.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := control.CombinedOutput()
	if err != nil {
		t.Fatalf("the control: %v\n%s", err, out)
	}
	got, proven := lines(string(out), "reached"), 0
	pod := os.Getenv("TEST_IN_POD") != "" // which keeps the control from much of it by itself
	for _, p := range allProbes() {
		switch name := p.family + ": " + p.name; {
		case slices.Contains(got, name):
			proven++
		case pod:
			t.Logf("reaches nothing in this pod, also without a sandbox: %s: %s", name, lines(string(out), "failed "+name+":"))
		case p.blind == "" && p.harm == "" && privileged(p.needs):
			t.Errorf("reaches nothing without a sandbox: %s: %s", name, lines(string(out), "failed "+name+":"))
		}
	}
	t.Logf("%d probes, of which %d reach something without a sandbox", len(allProbes()), proven)
	if proven < 20 {
		t.Errorf("%d probes reach something without a sandbox", proven)
	}
	if n := len(allProbes()); n < 200 {
		t.Errorf("there are %d probes, and the guide promises two hundred", n)
	}
	if _, err := os.Stat(o.file()); err != nil {
		t.Fatalf("the control did harm: %v", err)
	}
	for _, network := range []sandbox.Network{sandbox.NetworkNone, sandbox.NetworkFull} {
		c := confined(t, "exec "+self)
		c.Sandbox.Mounts = append(c.Sandbox.Mounts, sandbox.Path(self, sandbox.ReadOnly)...)
		c.Sandbox.Network = network
		c.Env = append(c.Env, "TEST_PROBES="+string(network))
		c.Stdin = orders
		r, err := Run(t.Context(), c)
		if err != nil || r.ExitCode != 0 || len(lines(string(r.Output), "ran")) != 1 {
			t.Errorf("network %s: code %d, %v\n%s", network, r.ExitCode, err, r.Output)
		}
		for _, name := range lines(string(r.Output), "reached") {
			t.Errorf("network %s: a sandbox does not hold %s", network, name)
		}
	}
}
