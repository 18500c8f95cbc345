"""Ask another question: where a field is highest, and where it exceeds half of its unknown maximum."""

import fieldbo

best = fieldbo.run(fieldbo.load_mission("gp-lake-optimum-ei-per-cost", {"agent": {"battery": 1500}}))
told = best.summary()
print(f"highest at {told['reported_site']}, regret {told['regret']:.3f}, for {best.cost:.0f} s")

share = fieldbo.run(fieldbo.load_mission("gp-lake-share-truvar", {"agent": {"battery": 3000}}))
told = share.summary()
shown = f"above {told['threshold']:.2f} in {told['area_above']:.0f} m2"
print(f"{shown}, F1 {told['f1']:.2f}, for {share.cost:.0f} s")
