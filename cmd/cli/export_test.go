package cli

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/dsasched/dsasched/model/zoo"
)

// What inspect says of a network it also says of the exported one.
func TestExport(t *testing.T) {
	workspace(t)
	for _, name := range append(zoo.Names(), "./net.onnx") {
		all := []string{" --batch 3 --dtype f32", "", " --zero-weights"}
		if name != "resnet50" && name != "bert-128" && name != "./net.onnx" {
			all = all[:1]
		}
		for _, flags := range all {
			t.Run(name+flags, func(t *testing.T) {
				args := strings.Fields(name + flags)
				got := answer(t, append([]string{"export", "onnx", "-o", "out.onnx"}, args...)...)
				info, err := os.Stat("out.onnx")
				if err != nil {
					t.Fatal(err)
				}
				if !regexp.MustCompile(fmt.Sprintf(`^out\.onnx: \d+ operators, %d bytes\n$`, info.Size())).MatchString(got) {
					t.Errorf("answer %q for a file of %d bytes", got, info.Size())
				}
				args = strings.Fields(name + strings.ReplaceAll(flags, "--zero-weights", ""))
				want := answer(t, append([]string{"inspect", "--json"}, args...)...)
				args[0] = "out.onnx"
				back := answer(t, append([]string{"inspect", "--json"}, args...)...)
				want = strings.Replace(want, `"model": "`+name+`"`, `"model": "out.onnx"`, 1)
				if back != want {
					t.Errorf("inspect says %s, want %s", back, want)
				}
			})
		}
	}
}

func TestExportFiles(t *testing.T) {
	workspace(t)
	first := answer(t, "export", "onnx", "net.onnx", "-o", stdoutName)
	answer(t, "export", "onnx", "net.onnx", "-o", "out.onnx")
	data, err := os.ReadFile("out.onnx")
	if err != nil {
		t.Fatal(err)
	}
	if string(data) != first {
		t.Error("the file and the standard output differ")
	}
	if err := os.Chmod("out.onnx", 0o662); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("out.onnx", "link.onnx"); err != nil {
		t.Fatal(err)
	}
	// Another file, through a link: the link stays, and so do the permissions.
	answer(t, "export", "onnx", "net.onnx", "-o", "link.onnx", "--batch", "4", "--simplify")
	info, err := os.Stat("out.onnx")
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o662 {
		t.Errorf("permissions are %v, were 0662", info.Mode().Perm())
	}
	if r := answer(t, "inspect", "link.onnx"); !strings.Contains(r, "[4,16]") {
		t.Errorf("the file was not replaced: %s", r)
	}
	if info, err := os.Lstat("link.onnx"); err != nil || info.Mode().IsRegular() {
		t.Errorf("the link was replaced: %v, %v", info, err)
	}
	if r := call(t, "export", "onnx", "link.onnx", "-o", "out.onnx"); r.status != exitUsage {
		t.Errorf("a network was written over itself: %+v", r)
	}
	for _, name := range fileNames(t) {
		if strings.HasSuffix(name, ".tmp") {
			t.Errorf("%s was left behind", name)
		}
	}
}
