"""Client library of monolock, for Conan 2. Builds the tree that it stands in."""

import os

from conan import ConanFile
from conan.tools.build import check_min_cppstd
from conan.tools.cmake import CMake, CMakeDeps, CMakeToolchain, cmake_layout
from conan.tools.files import copy


class Monolock(ConanFile):
    name = "monolock"
    version = "0.1.0"
    license = "Apache-2.0"
    description = "Client library of the monolock lock server"
    settings = "os", "arch", "compiler", "build_type"
    options = {"shared": [True, False]}
    default_options = {"shared": False}

    def export_sources(self):
        tree = os.path.join(self.recipe_folder, "..", "..")
        for pattern in ("CMakeLists.txt", "LICENSE", "cmake/*", "include/*", "src/*"):
            copy(self, pattern, tree, self.export_sources_folder)

    def requirements(self):
        self.requires("openssl/[>=3 <4]")

    def validate(self):
        check_min_cppstd(self, 20)

    def layout(self):
        cmake_layout(self)

    def generate(self):
        toolchain = CMakeToolchain(self)
        for part in ("PROGRAMS", "SIMULATOR", "TESTS"):
            toolchain.cache_variables[f"MONOLOCK_BUILD_{part}"] = False
        toolchain.generate()
        CMakeDeps(self).generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        copy(self, "LICENSE", self.source_folder, os.path.join(self.package_folder, "licenses"))
        CMake(self).install()

    def package_info(self):
        self.cpp_info.set_property("cmake_file_name", "monolock")
        self.cpp_info.set_property("cmake_target_name", "monolock::monolock")
        self.cpp_info.set_property("pkg_config_name", "monolock")
        self.cpp_info.libs = ["monolock"]
        self.cpp_info.system_libs = ["pthread"]
