"""What CycloneDX's schema asks for, of the parts of it that tools/sbom.py writes; without the schema, which is not at hand offline."""
import re

LICENCES = {"MIT", "blessing", "BSD-3-Clause OR GPL-2.0-only", "Zlib", "LGPL-2.1-or-later", "GPL-3.0-or-later WITH GCC-exception-3.1"}
COMPONENT = {"type", "bom-ref", "name", "version", "licenses", "purl", "cpe", "externalReferences", "properties"}
ALL = {"$schema", "bomFormat", "specVersion", "serialNumber", "version", "metadata", "components", "dependencies"}


def check_component(case, part):
    case.assertLessEqual(set(part), COMPONENT)
    case.assertIn(part["type"], ("application", "library"))
    case.assertIn(part["licenses"][0]["expression"], LICENCES)
    case.assertRegex(part["purl"], r"^pkg:(deb/[a-z]+|pypi|generic)/[A-Za-z0-9.+-]+@[A-Za-z0-9.~%_-]+(\?arch=\w+(&distro=[\w.-]+)?)?$")
    if "cpe" in part:
        case.assertRegex(part["cpe"], r"^cpe:2\.3:a:\w+:\w+:%s(:\*){7}$" % re.escape(part["version"]))
    for entry in part.get("properties", []):
        case.assertEqual(set(entry), {"name", "value"})


def check(case, bill):
    """{name: component}; the case fails where the bill is none."""
    case.assertEqual((set(bill), bill["bomFormat"], bill["specVersion"], bill["version"]), (ALL, "CycloneDX", "1.6", 1))
    case.assertRegex(bill["serialNumber"], r"^urn:uuid:[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")
    check_component(case, bill["metadata"]["component"])
    for part in bill["components"]:
        check_component(case, part)
    parts = {part["bom-ref"]: part for part in bill["components"]}
    case.assertEqual(len(parts), len(bill["components"]), "references are of one component each")
    case.assertEqual({entry["ref"] for entry in bill["dependencies"]}, {"nrg", *parts})
    case.assertEqual(bill["dependencies"][0]["dependsOn"], sorted(parts))
    return parts


def linkage(part):
    return {entry["name"]: entry["value"] for entry in part["properties"]}["nrg:linkage"]
