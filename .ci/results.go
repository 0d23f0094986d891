// Results reads the output of go test -json and prints what a person wants to see: the line of each package, and the whole output of what failed.
// It fails when a test failed or was skipped, when a package could not be built, and when there were no tests at all.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strings"
)

// event is one line of go test -json.
type event struct {
	Action, Package, Test, Output, ImportPath string
}

func main() {
	var passed, failed int
	var skipped []string
	output := map[string][]string{} // of tests that have not ended, by package and test
	lines := bufio.NewReader(os.Stdin)
	for {
		line, err := lines.ReadString('\n')
		var e event
		switch {
		case line == "":
		case json.Unmarshal([]byte(line), &e) != nil:
			fmt.Print(line)
		default:
			key := e.Package + " " + e.Test
			switch e.Action {
			case "build-output":
				fmt.Print(e.Output)
			case "build-fail":
				failed++
			case "output":
				if e.Test == "" {
					printPackageLine(e.Output)
					continue
				}
				output[key] = append(output[key], e.Output)
			case "pass":
				if e.Test != "" {
					passed++
				}
				delete(output, key)
			case "skip":
				if e.Test != "" {
					skipped = append(skipped, key)
				}
				delete(output, key)
			case "fail":
				failed++
				fmt.Print(strings.Join(output[key], ""))
				delete(output, key)
			}
		}
		if err != nil {
			break
		}
	}
	for _, text := range output { // of tests that were running when their program died
		fmt.Print(strings.Join(text, ""))
	}
	for _, test := range skipped {
		fmt.Println("skipped:", test)
	}
	if failed > 0 || len(skipped) > 0 || passed == 0 || len(output) > 0 {
		fmt.Printf("%d tests passed, %d tests or packages failed, %d tests were skipped\n", passed, failed, len(skipped))
		os.Exit(1)
	}
}

// printPackageLine prints what go test says of a package, other than what says nothing.
func printPackageLine(line string) {
	if line != "PASS\n" && line != "FAIL\n" && !strings.Contains(line, "[no test files]") {
		fmt.Print(line)
	}
}
