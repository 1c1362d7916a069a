//go:build unix

package cli

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// Whatever reads a file refuses what is none at once, with its name: a pipe would have to be
// waited for. FILE stands for it.
func TestNoRegularFile(t *testing.T) {
	workspace(t)
	answer(t, "tune", "net.onnx", "--trials", "2", "-o", "tuned.json", "-q")
	sweep := "sweep net.onnx --set batch=1,2 -q --cells "
	answer(t, strings.Fields(sweep+"whole")...)
	cells, err := filepath.Glob("whole/sweep/cells/*.json")
	if err != nil || len(cells) != 2 {
		t.Fatalf("cells %q, %v", cells, err)
	}
	if err := os.Mkdir("folder.json", 0o777); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo("pipe.json", 0o666); err != nil {
		t.Fatal(err)
	}
	socket, err := net.Listen("unix", "socket.json")
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	for name, to := range map[string]string{"link.json": "pipe.json", "device.json": os.DevNull} {
		if err := os.Symlink(to, name); err != nil {
			t.Fatal(err)
		}
	}
	for _, command := range []string{
		"schedule ./FILE",
		"inspect ./FILE",
		"best ./FILE --evaluations 1",
		"best net.onnx --evaluations 1 --start FILE",
		"solve bind net.onnx --start FILE",
		"solve split net.onnx --start FILE",
		"compare ./FILE",
		"compare-hardware ./FILE",
		"compare-hardware net.onnx --hardware stcp920,./FILE",
		"bound ./FILE",
		"bound net.onnx --hardware ./FILE",
		"calibrate --hardware ./FILE",
		"schedule net.onnx --hardware ./FILE",
		"schedule net.onnx --variant ansor --tuned FILE",
		"hardware ./FILE",
		"simulate FILE",
		"simulate net.schedule.json --hardware ./FILE",
		"check schedule FILE",
		"check schedule net.schedule.json --hardware ./FILE",
		"explain FILE",
		"explain net.schedule.json --against FILE",
		"certify FILE",
		"certify net.certificate.json --model ./FILE",
		"certify net.certificate.json --hardware ./FILE",
		"check order chain.json FILE",
		"check order FILE order.json",
		"solve order FILE",
		"solve order chain.json --start FILE",
		"solve joint FILE",
		"solve joint joint.json --start FILE",
		"solve partition FILE",
		"solve partition graph.json --start FILE",
		"solve allocate FILE --minimize",
		"solve allocate buffers.csv --minimize --start FILE",
		"solve layering ./FILE",
		"solve layering net.onnx --hardware ./FILE",
		"solve pipeline ./FILE",
		"solve pipeline net.onnx --server ./FILE",
		"solve stitch ./FILE",
		"solve stitch net.onnx --hardware ./FILE",
		"sweep ./FILE --set batch=1",
		"sweep net.onnx --set hardware=./FILE",
		"tasks ./FILE",
		"tasks net.onnx --hardware ./FILE",
		"tune ./FILE --trials 1 -o out.json",
		"tune net.onnx --trials 1 --log FILE -o out.json",
		"explain-kernel FILE --task 0",
		"report FILE",
	} {
		for _, name := range []string{"pipe.json", "folder.json", "socket.json", "link.json", "device.json"} {
			args := strings.ReplaceAll(command, "FILE", name)
			want := name + ": no regular file but a "
			if strings.HasPrefix(command, "report") {
				want = name // they read folders
			}
			if r := call(t, strings.Fields(args)...); r.status != exitFailure || !strings.Contains(r.stderr, want) {
				t.Errorf("%s: status %d, %q", args, r.status, r.stderr)
			}
		}
	}
	// What lies in a folder of results, and is none.
	for _, c := range []struct{ file, command, want string }{
		{cells[0], sweep + "whole", ""}, // computed again
		{"results/fig14/fig14.json", "report results", "fig14.json: no regular file but a pipe"},
	} {
		if err := os.Remove(c.file); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Mkfifo(c.file, 0o666); err != nil {
			t.Fatal(err)
		}
		r := call(t, strings.Fields(c.command)...)
		if c.want == "" && r.status != exitOK || c.want != "" &&
			(r.status != exitFailure || !strings.Contains(r.stderr, c.want)) {
			t.Errorf("%s: status %d, %q", c.command, r.status, r.stderr)
		}
	}
}
