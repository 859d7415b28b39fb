package e2e

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// spyVariable makes the test binary the spy on the process that it names.
const spyVariable = "PFL_FORGE_TEST_SPY"

// init is before TestMain, which would build all programs.
func init() { //nolint:gochecknoinits // see above
	if pid, err := strconv.Atoi(os.Getenv(spyVariable)); err == nil {
		spy(pid)
		os.Exit(0)
	}
}

// spy prints each way by which it reaches what another process of the same user holds.
func spy(pid int) {
	runtime.LockOSThread() // a tracer is a thread
	proc := fmt.Sprintf("/proc/%d/", pid)
	if env, err := os.ReadFile(proc + "environ"); err == nil && bytes.Contains(env, []byte("CANARY")) {
		fmt.Println("environ")
	}
	if _, err := os.ReadDir(proc + "fd"); err == nil {
		fmt.Println("fd")
	}
	if f, err := os.Open(proc + "mem"); err == nil {
		_ = f.Close()
		fmt.Println("mem")
	}
	if f, err := os.Open(proc + "maps"); err == nil {
		if n, _ := f.Read(make([]byte, 10)); n > 0 {
			fmt.Println("maps")
		}
		_ = f.Close()
	}
	if err := unix.PtraceSeize(pid); err == nil {
		fmt.Println("ptrace")
	}
	var b [8]byte
	local, far := []unix.Iovec{{Base: &b[0], Len: 8}}, []unix.RemoteIovec{{Base: 0x400000, Len: 8}}
	if _, err := unix.ProcessVMReadv(pid, local, far, 0); err == nil {
		fmt.Println("process_vm_readv")
	}
}

// TestKeysAreNotReadByOthers: a process of the same user that may not trace everything, such as
// a command without a sandbox, reads no key out of any of our programs: not from its
// environment, its memory or its files, and none leaves a core dump. The key is not even in the
// environment any more. The same attempts all work on a program that does not protect itself.
func TestKeysAreNotReadByOthers(t *testing.T) {
	t.Parallel()
	const nobody = 65534
	user := &syscall.Credential{Uid: uint32(os.Getuid()), Gid: uint32(os.Getgid())}
	if os.Getuid() == 0 { // who may trace everything
		user = &syscall.Credential{Uid: nobody, Gid: nobody}
	}
	dir, err := os.MkdirTemp("/tmp", "pfl-forge-keys-") //nolint:usetesting // the other user may not enter that, or TMPDIR
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	own := func(path string) string {
		if err := os.Chown(path, int(user.Uid), int(user.Gid)); err != nil {
			t.Fatal(err)
		}
		return path
	}
	own(dir)
	bring := func(from string) string {
		to := filepath.Join(dir, filepath.Base(from))
		data, err := os.ReadFile(from)
		if err == nil {
			err = os.WriteFile(to, data, 0o755)
		}
		if err != nil {
			t.Fatal(err)
		}
		return own(to)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	self = bring(self)
	// A server that takes connections and says nothing: programs wait for it.
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = silent.Close() }()
	server := "nats://" + silent.Addr().String()
	start := func(t *testing.T, program string, args ...string) *exec.Cmd {
		t.Helper()
		cmd := exec.Command("/bin/sh", append([]string{"-c", `ulimit -c unlimited; exec "$0" "$@" >said 2>&1`, program}, args...)...)
		cmd.Dir = dir
		cmd.Env = []string{
			"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "TMPDIR=" + dir, "ANTHROPIC_API_KEY=CANARY", "GOTRACEBACK=crash", "GORACE=atexit_sleep_ms=0",
		}
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: user}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		return cmd
	}
	spied := func(t *testing.T, pid int) string {
		t.Helper()
		cmd := exec.Command(self)
		cmd.Dir, cmd.Env = dir, []string{spyVariable + "=" + strconv.Itoa(pid)}
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: user}
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return strings.Join(strings.Fields(string(out)), " ")
	}
	// up waits until the program has said something to the server, or is in its main otherwise.
	up := func(t *testing.T) {
		t.Helper()
		if err := silent.(*net.TCPListener).SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
			t.Fatal(err)
		}
		conn, err := silent.Accept()
		if err != nil {
			said, _ := os.ReadFile(filepath.Join(dir, "said"))
			t.Fatalf("%v\n%s", err, said)
		}
		t.Cleanup(func() { _ = conn.Close() })
	}
	t.Run("a program that does not", func(t *testing.T) {
		cmd := start(t, "sleep", "600")
		defer func() {
			_ = cmd.Wait()
			_ = os.Remove(filepath.Join(dir, "core"))
		}()
		comm := fmt.Sprintf("/proc/%d/comm", cmd.Process.Pid)
		wait.Until(t, "sleep", func() bool { b, _ := os.ReadFile(comm); return string(b) == "sleep\n" })
		if got := spied(t, cmd.Process.Pid); !strings.HasPrefix(got, "environ fd") || !strings.Contains(got, "maps") {
			t.Errorf("the spy reaches %q: it would find nothing elsewhere either", got)
		}
		_ = cmd.Process.Signal(syscall.SIGABRT)
	})
	for _, tt := range [][]string{
		{"pfl-forge", "status", "--server", server, "--project", "shop"},
		{"pfl-forge", "run", "--server", server, "--project", "shop"},
		{"runner", "--server", server},
		{"analyzer", "--server", server, "--project", "shop=" + dir},
		{"implementer", "--server", server, "--project", "shop=" + dir},
		{"reviewer", "--server", server, "--project", "shop=" + dir},
		{"reflector", "--server", server, "--project", "shop=" + dir},
		{"gateway", "--server", server},
	} {
		t.Run(strings.Join(tt[:2], " "), func(t *testing.T) {
			cmd := start(t, bring(filepath.Join(bin, tt[0])), tt[1:]...)
			up(t)
			_ = cmd.Process.Signal(syscall.SIGSTOP) // one that gives up waiting for the server would be gone before it is looked at
			if got := spied(t, cmd.Process.Pid); got != "" {
				t.Errorf("a process of the same user reaches its %s", got)
			}
			if os.Getuid() == 0 { // who reads every environment
				if block, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", cmd.Process.Pid)); err != nil || bytes.Contains(block, []byte("CANARY")) {
					t.Errorf("its environment still has the key: %v", err)
				}
			}
			_ = cmd.Process.Signal(syscall.SIGABRT)
			_ = cmd.Process.Signal(syscall.SIGCONT)
			_ = cmd.Wait()
			if cmd.ProcessState.Sys().(syscall.WaitStatus).CoreDump() {
				t.Error("its memory was dumped")
			}
			left, _ := filepath.Glob(filepath.Join(dir, "core*"))
			if len(left) > 0 {
				t.Errorf("left %q", left)
			}
			for _, path := range left {
				_ = os.Remove(path)
			}
		})
	}
}
