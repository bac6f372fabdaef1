import ArgumentParser
import Hummingbird

print("x")
