// Renders a chart as `helm template` does, values checked against the schema: render CHART NAME NAMESPACE VALUES.yaml
package main

import (
	"fmt"
	"os"
	"sort"
	"strings"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
)

func main() {
	if err := render(os.Args[1], os.Args[2], os.Args[3], os.Args[4]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func render(folder, name, namespace, file string) error {
	chart, err := loader.Load(folder)
	if err != nil {
		return err
	}
	values, err := chartutil.ReadValuesFile(file)
	if err != nil {
		return err
	}
	release := chartutil.ReleaseOptions{Name: name, Namespace: namespace, Revision: 1, IsInstall: true}
	all, err := chartutil.ToRenderValues(chart, values, release, nil)
	if err != nil {
		return err
	}
	made, err := engine.Render(chart, all)
	if err != nil {
		return err
	}
	var names []string
	for each, text := range made {
		if strings.HasSuffix(each, ".yaml") && strings.TrimSpace(text) != "" {
			names = append(names, each)
		}
	}
	sort.Strings(names)
	for _, each := range names {
		fmt.Printf("---\n%s\n", strings.TrimSpace(made[each]))
	}
	return nil
}
