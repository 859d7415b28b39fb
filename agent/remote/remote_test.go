package remote_test

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/pfl-forge/pfl-forge/agent/process"
	"github.com/pfl-forge/pfl-forge/agent/process/executortest"
	"github.com/pfl-forge/pfl-forge/agent/remote"
	"github.com/pfl-forge/pfl-forge/agent/remote/remotetest"
	"github.com/pfl-forge/pfl-forge/agent/sandbox"
)

func TestMain(m *testing.M) {
	remotetest.Main()
	goleak.VerifyTestMain(m)
}

// TestContainer holds a container at the other end of two pipes to the suite of all
// executors.
func TestContainer(t *testing.T) {
	remotetest.Need(t)
	state := t.TempDir()
	executortest.Run(t, remotetest.Container{T: t, State: state}, state)
}

// TestCommandCannotSpeakForTheOtherEnd tries from within a command to write to, to
// trace and to end the process that reports on it.
func TestCommandCannotSpeakForTheOtherEnd(t *testing.T) {
	remotetest.Need(t)
	state := t.TempDir()
	c := shell(t, state, `
		for p in 1 $PPID; do
			echo forged > /proc/$p/fd/1 && echo "wrote to $p"
			echo forged > /proc/$p/fd/4 && echo "wrote to $p"
			cat /proc/$p/environ > /dev/null && echo "read of $p"
			dd if=/proc/$p/mem bs=1 count=1 of=/dev/null && echo "memory of $p"
		done
		for s in TERM INT HUP KILL STOP QUIT; do kill -$s 1; done
		echo still here; exit 7`)
	r, err := remotetest.Container{T: t, State: state}.Run(t.Context(), c)
	if err != nil || r.ExitCode != 7 || !strings.Contains(string(r.Output), "still here\n") { // what it says of errors comes by another pipe
		t.Errorf("%v, %d, %s", err, r.ExitCode, r.Output)
	}
	for _, bad := range []string{"wrote to", "read of", "memory of"} {
		if strings.Contains(string(r.Output), bad) {
			t.Errorf("%s\n%s", bad, r.Output)
		}
	}
}

// shell returns a command with a directory below the state.
func shell(t *testing.T, state, script string) process.Command {
	t.Helper()
	dir := filepath.Join(state, "dir")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return process.Command{
		Path: "/bin/sh", Args: []string{"-c", script}, Dir: dir, Env: process.Environment(dir),
		Sandbox: &sandbox.Spec{Mounts: sandbox.Path(dir, sandbox.Writable)},
	}
}

// TestOtherEndDies kills the container while its command runs: nothing of the command is
// kept, and the error says that the place was lost.
func TestOtherEndDies(t *testing.T) {
	remotetest.Need(t)
	state := t.TempDir()
	c := shell(t, state, "echo changed > file; echo started; sleep 600")
	conn, ended := remotetest.Container{T: t, State: state}.Start()
	defer ended()
	c.Line = func(process.Stream, []byte) { go conn.Close() }
	if _, err := remote.Run(t.Context(), conn, c, state); !errors.Is(err, process.ErrLost) {
		t.Errorf("%v, want a loss", err)
	}
	if _, err := os.Stat(filepath.Join(c.Dir, "file")); err == nil {
		t.Error("half of what it did is there")
	}
}

// TestDirectoriesWithin refuses a command before anything of it is sent, if a directory within
// another one has less rights, or others, than could be kept apart.
func TestDirectoriesWithin(t *testing.T) {
	for _, kinds := range [][2]sandbox.Kind{
		{sandbox.Writable, sandbox.ReadOnly}, {sandbox.ReadOnly, sandbox.Writable}, {sandbox.Writable, sandbox.Hidden}, {sandbox.ReadOnly, sandbox.Hidden},
	} {
		state := t.TempDir()
		c := shell(t, state, "true")
		inner := filepath.Join(c.Dir, "inner")
		if err := os.Mkdir(inner, 0o700); err != nil {
			t.Fatal(err)
		}
		c.Sandbox.Mounts = []sandbox.Mount{{Path: inner, Kind: kinds[1]}, {Path: c.Dir, Kind: kinds[0]}}
		here, there := net.Pipe()
		if _, err := remote.Run(t.Context(), here, c, state); err == nil || !strings.Contains(err.Error(), inner) {
			t.Errorf("%s in %s: %v", kinds[1], kinds[0], err)
		}
		if n, err := there.Read(make([]byte, 1)); n > 0 || !errors.Is(err, io.EOF) {
			t.Errorf("%s in %s: something was sent: %v", kinds[1], kinds[0], err)
		}
	}
}

// TestSilentOtherEnd has an other end that takes everything and never reports.
func TestSilentOtherEnd(t *testing.T) {
	here, there := net.Pipe()
	errStop := errors.New("nobody waits any more")
	ctx, stop := context.WithCancelCause(t.Context())
	go func() {
		_, _ = io.ReadFull(there, make([]byte, 100)) // the command is under way
		go stop(errStop)
		_, _ = io.Copy(io.Discard, there)
	}()
	state := t.TempDir()
	if _, err := remote.Run(ctx, here, shell(t, state, "true"), state); !errors.Is(err, errStop) {
		t.Error(err)
	}
	_ = there.Close()
}

// TestOtherEndGoesWhileFilesAreSent checks that the loss of a pod is no failure
// of what was to run in it, whenever it is lost.
func TestOtherEndGoesWhileFilesAreSent(t *testing.T) {
	state := t.TempDir()
	c := shell(t, state, "true")
	if err := os.WriteFile(filepath.Join(c.Dir, "large"), make([]byte, 2<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	here, there := net.Pipe()
	go func() {
		_, _ = io.CopyN(io.Discard, there, 64<<10)
		_ = there.Close()
	}()
	if _, err := remote.Run(t.Context(), here, c, state); !errors.Is(err, process.ErrLost) {
		t.Errorf("the command ends with %v", err)
	}
}

// TestHostileFiles sends back what leads out of the directory, or fills the disk.
func TestHostileFiles(t *testing.T) {
	link := func(name, to string) *tar.Header {
		return &tar.Header{Name: name, Linkname: to, Typeflag: tar.TypeSymlink, Mode: 0o777}
	}
	file := func(name string) *tar.Header {
		return &tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o600, Size: 1}
	}
	for name, headers := range map[string][]*tar.Header{
		"above":              {file("0/../../escaped")},
		"absolute":           {file("0//escaped")},
		"no directory":       {file("escaped")},
		"another directory":  {file("1/escaped")},
		"negative directory": {file("-1/escaped")},
		"through a link":     {link("0/out", ".."), file("0/out/escaped")},
		"absolute link":      {link("0/out", os.TempDir()), file("0/out/escaped")},
		"hard link":          {{Name: "0/hard", Linkname: "/etc/passwd", Typeflag: tar.TypeLink}},
		"device":             {{Name: "0/null", Typeflag: tar.TypeChar, Devmajor: 1, Devminor: 3, Mode: 0o666}},
		"pipe":               {{Name: "0/pipe", Typeflag: tar.TypeFifo, Mode: 0o666}},
		"twice":              {file("0/a"), file("0/a")},
		"endless":            {{Name: "0/big", Typeflag: tar.TypeReg, Mode: 0o600, Size: 1 << 60}},
		"cut":                {file("0/a"), nil},
	} {
		t.Run(name, func(t *testing.T) {
			top := t.TempDir()
			dir := filepath.Join(top, "a", "dir")
			if err := os.MkdirAll(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, "kept"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			var archive bytes.Buffer
			w := tar.NewWriter(&archive)
			for _, h := range headers {
				if h == nil {
					archive.Truncate(archive.Len() - 1)
					break
				}
				if err := w.WriteHeader(h); err != nil {
					t.Fatal(err)
				}
				if h.Typeflag == tar.TypeReg && h.Size == 1 {
					if _, err := w.Write([]byte("x")); err != nil {
						t.Fatal(err)
					}
				}
			}
			if err := remote.Replace(&archive, []string{dir}); err == nil {
				t.Error("it is taken")
			}
			if _, err := os.Stat(filepath.Join(dir, "kept")); err != nil {
				t.Error("what was there is gone:", err)
			}
			var found []string
			_ = filepath.WalkDir(top, func(path string, _ os.DirEntry, _ error) error { found = append(found, path); return nil })
			if len(found) != 4 { // top, a, dir, kept
				t.Errorf("left behind: %q", found)
			}
			if _, err := os.Stat(filepath.Join(os.TempDir(), "escaped")); err == nil {
				t.Error("it escaped")
			}
		})
	}
}
